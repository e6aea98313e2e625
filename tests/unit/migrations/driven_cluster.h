// SPDX-License-Identifier: Apache-2.0
// A store in memory with one migration, and the simulated cluster of its plan as the driver's
// nodes.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "controlplane/migration/simulate/simulated_cluster.h"
#include "controlplane/migrations/migration_driver.h"
#include "controlplane/migrations/nodes/preflight.h"
#include "controlplane/store/local/memory_store.h"
#include "tests/support/migration/plans.h"

namespace rocegw::migrations {

// Returns a network beside RDMA without any fault, and without TCP.
inline types::v1::PlainPath GoodPlain() {
  types::v1::PlainPath path;
  path.set_sent(400);
  path.set_received(400);
  path.set_dscp_kept(400);
  path.set_ecn_kept(400);
  path.set_clock_ahead_ns(1000);
  return path;
}

// Nodes that execute each command at once, as the simulated agents do.
class SimulatedNodes final : public NodeAccess {
 public:
  SimulatedNodes(const migration::Plan& plan, std::vector<migration::Failure> failures)
      : plan_(plan), cluster_(plan, std::move(failures), 1), inventory_(plan.inventory_hash) {
    for (uint32_t i = 0; i < plan.nodes.size(); ++i) number_[plan.nodes[i].name] = i;
  }

  bool IsReachable(const std::string& node) override {
    const std::lock_guard lock(mutex_);
    return !away_.contains(node);
  }
  std::string Problem(const std::string& node) override {
    const std::lock_guard lock(mutex_);
    const auto found = problems_.find(node);
    return found == problems_.end() ? std::string() : found->second;
  }
  void Call(const std::string& node, const fleet::v1::MigrationCall& call, std::chrono::seconds,
            std::function<void(NodeAnswer)> done) override {
    NodeAnswer answer;
    bool answers = true;
    if (call.command() == 0 && call.call() == "verify" && on_verify_) on_verify_(node);
    {
      const std::lock_guard lock(mutex_);
      if (away_.contains(node)) {
        answer.code = 14;  // UNAVAILABLE
      } else if (call.command() == 0) {
        answer.report = AnswerTo(call);
      } else {
        answers = Execute(node, call, answer.report) && ++commands_ != lose_answer_;
      }
    }
    if (answers) done(std::move(answer));
    if (!answers && on_lost_) on_lost_();
  }

  void TestPath(const std::string& from, const std::string& to, std::chrono::seconds,
                std::function<void(NodeAnswer)> done) override {
    // The path from n2 is slower than the others.
    const bool slow = from == "n2";
    NodeAnswer answer{.median_ns = slow ? 40'000U : 30'000U,
                      .p99_ns = slow ? 90'000U : 50'000U,
                      .bytes_per_second = slow ? 200'000'000U : 600'000'000U};
    {
      const std::lock_guard lock(mutex_);
      answer.plain = plain_;
      if (blocked_ == from + " to " + to) {
        answer.code = 9;  // FAILED_PRECONDITION
        answer.message = "TIMED_OUT at gateways/" + from + ": no answer";
      }
    }
    done(std::move(answer));
  }

  void ReadQuota(const std::string& node, std::chrono::seconds,
                 std::function<void(NodeAnswer)> done) override {
    NodeAnswer answer;
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = free_qps_.find(node); found != free_qps_.end())
        answer.free_qps = found->second;
    }
    done(std::move(answer));
  }
  // Makes the adapter find the node ill; an empty text: healthy.
  void SetIll(const std::string& node, const std::string& text) {
    const std::lock_guard lock(mutex_);
    text.empty() ? (void)ill_.erase(node) : (void)(ill_[node] = text);
  }
  void SetVersion(const std::string& node, const std::string& version) {
    const std::lock_guard lock(mutex_);
    cluster_.facts()[number_.at(node)].gateway_version = version;
  }
  void SetFreeQps(const std::string& node, uint64_t free) {
    const std::lock_guard lock(mutex_);
    free_qps_[node] = free;
  }
  // Sets the network beside RDMA that path tests measure.
  void SetPlain(const types::v1::PlainPath& plain) {
    const std::lock_guard lock(mutex_);
    plain_ = plain;
  }

  // Lets no packet pass on the path "n1 to n2".
  void Block(const std::string& path) {
    const std::lock_guard lock(mutex_);
    blocked_ = path;
  }
  void SetProblem(const std::string& node, const std::string& text) {
    const std::lock_guard lock(mutex_);
    problems_[node] = text;
  }
  void SetAway(const std::string& node, bool away) {
    const std::lock_guard lock(mutex_);
    away ? (void)away_.insert(node) : (void)away_.erase(node);
  }
  void SetInventory(const std::string& hash) {
    const std::lock_guard lock(mutex_);
    inventory_ = hash;
  }
  void ForgetCalls() {
    const std::lock_guard lock(mutex_);
    without_calls_ = true;
  }
  // The answer to the nth command is lost, with what `then` does.
  void LoseAnswer(uint64_t nth, std::function<void()> then) {
    const std::lock_guard lock(mutex_);
    lose_answer_ = nth;
    on_lost_ = std::move(then);
  }
  uint64_t commands() {
    const std::lock_guard lock(mutex_);
    return commands_;
  }
  // Times that a command was executed; each should be once.
  uint32_t most_executions() {
    const std::lock_guard lock(mutex_);
    uint32_t most = 0;
    for (const auto& [command, times] : executed_) most = std::max(most, times);
    return most;
  }
  std::vector<migration::NodeFacts> facts() {
    const std::lock_guard lock(mutex_);
    return cluster_.facts();
  }
  // The application of a node uses another transport, without a word.
  void FallBack(const std::string& node, migration::Transport to) {
    const std::lock_guard lock(mutex_);
    cluster_.facts()[number_.at(node)].actual = to;
  }
  // Called at each question whose call is "verify", before it is answered.
  void OnVerify(std::function<void(const std::string& node)> what) { on_verify_ = std::move(what); }

 private:
  fleet::v1::MigrationReport AnswerTo(const fleet::v1::MigrationCall& call) const {
    fleet::v1::MigrationReport report;
    report.set_outcome("done");
    if (call.call() == "inventory") report.set_inventory_hash(inventory_);
    if (call.call() == "health") {
      report.set_gateway_version(cluster_.facts()[number_.at(call.node())].gateway_version);
      if (const auto ill = ill_.find(call.node()); ill != ill_.end()) {
        report.set_outcome("failed");
        report.set_text(ill->second);
      }
    }
    if (call.call() == "verify" || call.call() == "verify-old") {
      const uint32_t number = number_.at(call.node());
      const migration::NodeFacts& facts = cluster_.facts()[number];
      const auto stated = facts.prefers_new ? plan_.target : plan_.nodes[number].from;
      report.set_stated(std::string(WordOf(stated)));
      report.set_counted(std::string(WordOf(facts.actual)));
      report.set_config_hash(facts.config_hash);
      report.set_journal_intact(facts.journal_intact);
    }
    if (call.call() != "hello" || without_calls_) return report;
    for (const std::string& name : CallsFor(plan_)) report.add_calls(name);
    return report;
  }
  bool Execute(const std::string& node, const fleet::v1::MigrationCall& call,
               fleet::v1::MigrationReport& report) {
    migration::CommandIntent intent{.node = number_.at(node), .command = call.command()};
    intent.epoch = call.epoch();
    intent.step = *migration::FromWord<migration::Step>(call.call());
    const auto execution = cluster_.Execute(intent);
    if (execution.executed) ++executed_[call.command()];
    if (!execution.result.has_value()) return false;
    const migration::StepResult& result = *execution.result;
    report.set_outcome(std::string(WordOf(result.outcome)));
    report.set_text(result.text);
    const migration::Evidence& evidence = result.evidence;
    if (evidence.outstanding.has_value()) report.set_outstanding(*evidence.outstanding);
    report.set_config_hash(evidence.config_hash);
    if (evidence.stated.has_value()) report.set_stated(std::string(WordOf(*evidence.stated)));
    if (evidence.counted.has_value()) report.set_counted(std::string(WordOf(*evidence.counted)));
    if (evidence.journal_intact.has_value()) report.set_journal_intact(*evidence.journal_intact);
    if (evidence.clients_on_old.has_value()) report.set_clients_on_old(*evidence.clients_on_old);
    report.set_gateway_version(evidence.gateway_version);
    return true;
  }

  const migration::Plan& plan_;
  std::mutex mutex_;
  migration::SimulatedCluster cluster_;
  std::map<std::string, uint32_t> number_;
  std::set<std::string> away_;
  std::string inventory_;
  bool without_calls_ = false;
  std::string blocked_;
  std::map<std::string, std::string> problems_;  // by node
  std::map<std::string, std::string> ill_;       // why, by node
  std::map<std::string, uint64_t> free_qps_;     // by node
  std::optional<types::v1::PlainPath> plain_ = GoodPlain();
  uint64_t commands_ = 0;
  uint64_t lose_answer_ = 0;
  std::function<void()> on_lost_;
  std::function<void(const std::string& node)> on_verify_;
  std::map<uint64_t, uint32_t> executed_;
};

// Gates whose verdict a test sets.
class ScriptedGates final : public GateSource {
 public:
  bool IsConfigured() const override { return true; }
  void Evaluate(std::vector<std::string> gates, std::function<void(GateVerdict)> done) override {
    GateVerdict verdict;
    {
      const std::lock_guard lock(mutex_);
      ++rounds_;
      verdict = verdict_;
      if (gates.empty()) verdict = {migration::Outcome::kFailed, "no gates were asked"};
    }
    done(std::move(verdict));
  }
  void Set(GateVerdict verdict) {
    const std::lock_guard lock(mutex_);
    verdict_ = std::move(verdict);
  }
  uint64_t rounds() {
    const std::lock_guard lock(mutex_);
    return rounds_;
  }

 private:
  std::mutex mutex_;
  GateVerdict verdict_;
  uint64_t rounds_ = 0;
};

class DrivenCluster {
 public:
  static constexpr const char* kId = "m1";

  explicit DrivenCluster(const migration::PlanShape& shape = {},
                         const std::vector<std::string>& failures = {})
      : plan_(Quick(migration::TestPlan(shape))),
        store_(store::NewMemoryStore()),
        nodes_(plan_, Read(failures)) {
    StoredMigration stored{.id = kId, .plan = plan_, .record = migration::NewRecord(plan_)};
    const auto transition = migration::Handle(stored.plan, stored.record,
                                              migration::Order{.verb = migration::Verb::kPlan}, 1);
    EXPECT_TRUE(store_->Txn(CreationOf(stored, transition, 0))->succeeded);
  }

  const migration::Plan& plan() const { return plan_; }
  store::Store& store() { return *store_; }
  SimulatedNodes& nodes() { return nodes_; }
  ScriptedGates& gates() { return gates_; }
  const MigrationBoard& board() const { return board_; }
  std::unique_ptr<MigrationDriver> NewDriver() {
    return std::make_unique<MigrationDriver>(*store_, nodes_, gates_, board_, "test");
  }

  StoredMigration Stored() {
    auto rows = store_->Range({.range = store::KeyRange::Prefix(PrefixOf(kId))});
    std::string problem;
    StoredMigration stored = ReadMigration(kId, rows->entries, problem);
    EXPECT_EQ(problem, "");
    return stored;
  }
  // Gives an order as the API does; returns the refusal, or nothing.
  std::string Give(migration::Order order) {
    order.who = "alice";
    for (;;) {
      StoredStep step = StepAfter(Stored(), order, 1);
      if (!step.transition.refusal.empty()) return step.transition.refusal;
      if (store_->Txn(std::move(step.transaction))->succeeded) return {};
    }
  }
  // Waits until the record is so; returns whether it came to be.
  bool Await(const std::function<bool(const migration::Record&)>& condition) {
    constexpr std::chrono::seconds kPatience(60);
    store::BlockingWatch watch(*store_, store::KeyRange::Key(HeadKey(kId)), 1);
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
      if (condition(Stored().record)) return true;
      (void)watch.Next(std::chrono::seconds(1));
    }
    ADD_FAILURE() << "it is " << WordOf(Stored().record.state) << ": " << Stored().record.reason;
    return false;
  }
  bool AwaitState(migration::MigrationState state) {
    return Await([state](const migration::Record& record) { return record.state == state; });
  }
  void Start() {
    ASSERT_TRUE(AwaitState(migration::MigrationState::kPreflighted));
    ASSERT_EQ(Give({.verb = migration::Verb::kStart}), "");
  }

 private:
  static migration::Plan Quick(migration::Plan plan) {
    plan.knobs.soak = 0;
    plan.knobs.retry_after = 1;
    plan.knobs.lost_after = 1;
    return plan;
  }
  std::vector<migration::Failure> Read(const std::vector<std::string>& texts) const {
    std::vector<migration::Failure> failures;
    for (const std::string& text : texts) {
      std::string problem;
      failures.push_back(migration::ReadFailure(text, plan_, problem));
      EXPECT_EQ(problem, "");
    }
    return failures;
  }

  const migration::Plan plan_;
  std::unique_ptr<store::Store> store_;
  SimulatedNodes nodes_;
  ScriptedGates gates_;
  MigrationBoard board_;
};

}  // namespace rocegw::migrations
