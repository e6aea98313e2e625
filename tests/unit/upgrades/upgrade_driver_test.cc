// SPDX-License-Identifier: Apache-2.0
// The driver with a store in memory and simulated hosts: what it does by itself, what persons order
// through the store, and what is left when it is killed.
#include "controlplane/upgrades/upgrade_driver.h"

#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "controlplane/store/local/memory_store.h"
#include "rocegw/admin/v1/operations.pb.h"
#include "tests/support/store/forwarding_store.h"

namespace rocegw::upgrades {
namespace {

using admin::v1::Upgrade;
using admin::v1::UpgradedGateway;

// Hosts whose gateways are replaced at once.
class SimulatedHosts final : public HostAccess {
 public:
  HostState StateOf(const std::string& gateway) override {
    const std::lock_guard lock(mutex_);
    return {.connected = !away_.contains(gateway), .version = "0.1"};
  }
  TakeOverReports TakeOvers() override {
    const std::lock_guard lock(mutex_);
    return reports_;
  }
  void Report(const std::string& gateway, uint64_t count) {
    const std::lock_guard lock(mutex_);
    reports_[gateway].set_count(count);
  }
  void Ask(const std::string& gateway, const fleet::v1::TunnelQuestion& question,
           std::chrono::seconds, std::function<void(HostAnswer)> done) override {
    HostAnswer answer;
    bool answers = true;
    {
      const std::lock_guard lock(mutex_);
      if (away_.contains(gateway)) {
        answer.code = grpc::StatusCode::UNAVAILABLE;
      } else if (question.has_get_status()) {
        *answer.answer.mutable_status() = StatusOf(gateway);
      } else if (old_agents_) {
        answer.code = grpc::StatusCode::UNIMPLEMENTED;
      } else {
        *answer.answer.mutable_replacement() = Replace(gateway, question.replace_gateway());
        answers = ++orders_ != lose_answer_;
      }
    }
    if (answers && asynchronous_) {
      const std::lock_guard lock(mutex_);
      later_.emplace_back(std::move(done), std::move(answer));
      return;
    }
    if (answers) return done(std::move(answer));
    if (on_lost_) on_lost_();
  }

  // Before the driver: answers wait for AnswerAll.
  void SetAsynchronous() { asynchronous_ = true; }
  size_t waiting() {
    const std::lock_guard lock(mutex_);
    return later_.size();
  }
  void AnswerAll() {
    std::vector<std::pair<std::function<void(HostAnswer)>, HostAnswer>> all;
    {
      const std::lock_guard lock(mutex_);
      all.swap(later_);
    }
    for (auto& [done, answer] : all) done(std::move(answer));
  }
  void SetAway(const std::string& gateway) {
    const std::lock_guard lock(mutex_);
    away_.insert(gateway);
  }
  void SetPresent(const std::string& gateway) {
    const std::lock_guard lock(mutex_);
    away_.erase(gateway);
  }
  void TakeOver(const std::string& gateway) {
    const std::lock_guard lock(mutex_);
    ++take_overs_[gateway];
  }
  void SetRefusing(const std::string& gateway, bool refuses) {
    const std::lock_guard lock(mutex_);
    refuses ? (void)refusing_.insert(gateway) : (void)refusing_.erase(gateway);
  }
  void SetOldAgents() {
    const std::lock_guard lock(mutex_);
    old_agents_ = true;
  }
  // The answer to the nth order is lost, with what `then` does.
  void LoseAnswer(uint64_t nth, std::function<void()> then) {
    const std::lock_guard lock(mutex_);
    lose_answer_ = nth;
    on_lost_ = std::move(then);
  }
  uint64_t TakeOversOf(const std::string& gateway) {
    const std::lock_guard lock(mutex_);
    return take_overs_[gateway];
  }
  uint64_t orders() {
    const std::lock_guard lock(mutex_);
    return orders_;
  }

 private:
  types::v1::GatewayStatus StatusOf(const std::string& gateway) {
    types::v1::GatewayStatus status;
    status.set_ready(true);
    status.set_version(take_overs_[gateway] == 0 ? "0.1" : "0.2");
    status.mutable_take_overs()->set_count(take_overs_[gateway]);
    return status;
  }
  // As agents do: a repeated order finds the take-over that was.
  fleet::v1::ReplacementReport Replace(const std::string& gateway,
                                       const fleet::v1::ReplaceGateway& order) {
    fleet::v1::ReplacementReport report;
    if (refusing_.contains(gateway)) {
      report.set_refused(true);
      report.set_reason("sessions");
    } else if (take_overs_[gateway] == order.take_overs()) {
      ++take_overs_[gateway];
    }
    *report.mutable_after() = StatusOf(gateway);
    return report;
  }

  std::mutex mutex_;
  std::map<std::string, uint64_t> take_overs_;
  TakeOverReports reports_;
  std::set<std::string> away_;
  std::set<std::string> refusing_;
  bool old_agents_ = false;
  bool asynchronous_ = false;
  std::vector<std::pair<std::function<void(HostAnswer)>, HostAnswer>> later_;
  uint64_t orders_ = 0;
  uint64_t lose_answer_ = 0;
  std::function<void()> on_lost_;
};

// Store that fails reads, and steps of upgrades, when it is told to.
class FailingStore final : public testing::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  void TxnHere(store::Transaction transaction, TxnDone done) override {
    const bool is_step = !transaction.then.empty() && transaction.then[0].key == HeadKey("u");
    if (is_step && fail_steps.load() > 0 && fail_steps.fetch_sub(1) > 0)
      return done(Status(EIO, "no step"));
    ForwardingStore::TxnHere(std::move(transaction), std::move(done));
  }
  void RangeAsync(store::RangeRequest request, RangeDone done) override {
    if (fail_reads && request.range.begin == kActiveKey) {
      ++failed_reads;
      return done(Status(EIO, "no read"));
    }
    ForwardingStore::RangeAsync(std::move(request), std::move(done));
  }

  std::atomic<int> fail_steps{0};
  std::atomic<bool> fail_reads{false};
  std::atomic<int> failed_reads{0};
};

class UpgradeDriverTest : public ::testing::Test {
 protected:
  std::unique_ptr<UpgradeDriver> NewDriver() {
    return std::make_unique<UpgradeDriver>(*store_, hosts_, board_, "test");
  }
  void Begin(int gateways, uint32_t max_unavailable = 1) {
    StoredUpgrade stored{.id = "u", .upgrade = {}};
    stored.upgrade.set_name("upgrades/u");
    stored.upgrade.mutable_spec()->add_waves("100%");
    stored.upgrade.mutable_spec()->set_soak_seconds(0);
    stored.upgrade.mutable_spec()->set_max_unavailable(max_unavailable);
    std::vector<std::string> names;
    for (int i = 0; i < gateways; ++i) names.push_back("gateways/g" + std::to_string(i));
    ASSERT_EQ(Plan(names, Now(), stored.upgrade), "");
    auto written = store_->Txn(CreationOf(stored));
    ASSERT_TRUE(written.ok() && written->succeeded);
  }
  StoredUpgrade Stored() {
    auto rows = store_->Range({.range = store::KeyRange::Prefix(PrefixOf("u"))});
    std::string problem;
    StoredUpgrade stored = ReadUpgrade("u", rows->entries, problem);
    EXPECT_EQ(problem, "");
    return stored;
  }
  bool Await(const std::function<bool()>& condition) {
    store::BlockingWatch watch(*store_, store::KeyRange::Prefix(kUpgradePrefix), 1);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      if (condition()) return true;
      (void)watch.Next(std::chrono::milliseconds(100));
    }
    return condition();
  }
  bool AwaitState(Upgrade::State state) {
    return Await([&] { return Stored().upgrade.state() == state; });
  }
  void Order(admin::v1::UpgradeVerb verb) {
    for (;;) {
      const StoredUpgrade stored = Stored();
      Upgrade after = stored.upgrade;
      Step step;
      ASSERT_EQ(Give(verb, "anna", Now(), after, step), "");
      if (store_->Txn(StepOf(stored, after, step))->succeeded) return;
    }
  }
  static int64_t Now() { return std::time(nullptr); }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  SimulatedHosts hosts_;
  UpgradeBoard board_;
};

TEST_F(UpgradeDriverTest, ReplacesEveryGatewayOnceAndFreesTheFleetForTheNextUpgrade) {
  const auto driver = NewDriver();
  Begin(5, 2);
  ASSERT_TRUE(AwaitState(Upgrade::DONE));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(hosts_.TakeOversOf("gateways/g" + std::to_string(i)), 1U);
  EXPECT_EQ(Stored().upgrade.gateways(4).version_after(), "0.2");
  auto active = store_->Range({.range = store::KeyRange::Key(kActiveKey)});
  EXPECT_TRUE(active->entries.empty());
}

TEST_F(UpgradeDriverTest, ADriverThatIsKilledAfterAnyOrderIsFollowedByOneThatGoesOn) {
  for (uint64_t nth = 1; nth <= 3; ++nth) {
    SCOPED_TRACE("killed after order " + std::to_string(nth));
    store_ = store::NewMemoryStore();
    SimulatedHosts fresh;
    UpgradeBoard board;
    std::mutex mutex;
    std::condition_variable changed;
    bool killed = false;
    fresh.LoseAnswer(nth, [&] {
      const std::lock_guard lock(mutex);
      killed = true;
      changed.notify_one();
    });
    auto driver = std::make_unique<UpgradeDriver>(*store_, fresh, board, "first");
    Begin(3);
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return killed; }));
    lock.unlock();
    driver.reset();
    driver = std::make_unique<UpgradeDriver>(*store_, fresh, board, "second");
    ASSERT_TRUE(AwaitState(Upgrade::DONE));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(fresh.TakeOversOf("gateways/g" + std::to_string(i)), 1U);
    EXPECT_EQ(fresh.orders(), 4U);
    driver.reset();
  }
}

TEST_F(UpgradeDriverTest, OfTwoControllersOneDrives) {
  const auto first = NewDriver();
  const auto second = NewDriver();
  Begin(4);
  ASSERT_TRUE(AwaitState(Upgrade::DONE));
  EXPECT_EQ(hosts_.orders(), 4U);
}

TEST_F(UpgradeDriverTest, ARefusalPausesAndAPersonHasItTriedAgain) {
  const auto driver = NewDriver();
  hosts_.SetRefusing("gateways/g0", true);
  Begin(2);
  ASSERT_TRUE(AwaitState(Upgrade::PAUSED));
  EXPECT_EQ(Stored().upgrade.gateways(0).state(), UpgradedGateway::REFUSED);
  EXPECT_EQ(hosts_.TakeOversOf("gateways/g1"), 0U);
  hosts_.SetRefusing("gateways/g0", false);
  Order(admin::v1::RETRY_UPGRADE);
  ASSERT_TRUE(AwaitState(Upgrade::DONE));
  EXPECT_EQ(hosts_.TakeOversOf("gateways/g0"), 1U);
}

TEST_F(UpgradeDriverTest, AnswersThatComeWhileTheStoreFailsAreNotLost) {
  hosts_.SetAsynchronous();
  FailingStore failing(*store_);
  const auto driver = std::make_unique<UpgradeDriver>(failing, hosts_, board_, "test");
  Begin(2, 2);
  ASSERT_TRUE(Await([&] { return hosts_.waiting() == 2; }));
  failing.fail_reads = true;
  hosts_.AnswerAll();
  ASSERT_TRUE(Await([&] { return failing.failed_reads > 1; }));
  failing.fail_steps = 1;
  failing.fail_reads = false;
  ASSERT_TRUE(Await([&] {
    hosts_.AnswerAll();
    return Stored().upgrade.state() == Upgrade::DONE;
  }));
  EXPECT_EQ(hosts_.orders(), 2U);
}

TEST_F(UpgradeDriverTest, AGatewayThatIsAwayWhenAnOldWaveHasANewControllerIsNotLost) {
  Begin(1);
  StoredUpgrade stored = Stored();
  Upgrade old = stored.upgrade;
  old.mutable_wave_time()->set_seconds(Now() - 3600);
  ASSERT_TRUE(
      store_->Txn(StepOf(stored, old, {.gateways = {}, .changes = {}, .head = true}))->succeeded);
  hosts_.SetAway("gateways/g0");
  const auto driver = NewDriver();
  // The driver posts after each pass; one with an upgrade follows its first pass.
  ASSERT_TRUE(Await([this] { return board_.Read().upgrade.has_value(); }));
  EXPECT_EQ(Stored().upgrade.gateways(0).state(), UpgradedGateway::WAITING);
  hosts_.SetPresent("gateways/g0");
  ASSERT_TRUE(AwaitState(Upgrade::DONE));
  EXPECT_EQ(Stored().upgrade.reason(), "");
}

TEST_F(UpgradeDriverTest, ATakeOverThatNoControllerSawTheEndOfIsReportedAfterTheDeadline) {
  Begin(1);
  StoredUpgrade stored = Stored();
  Upgrade old = stored.upgrade;
  types::v1::GatewayStatus status;
  status.mutable_take_overs();
  const Step step = BeginReplacement(0, status, Now() - 3600, old);
  ASSERT_TRUE(store_->Txn(StepOf(stored, old, step))->succeeded);
  hosts_.TakeOver("gateways/g0");
  const auto driver = NewDriver();
  ASSERT_TRUE(AwaitState(Upgrade::DONE));
  EXPECT_EQ(Stored().upgrade.gateways(0).state(), UpgradedGateway::REPLACED);
  EXPECT_EQ(hosts_.TakeOversOf("gateways/g0"), 1U);
}

TEST_F(UpgradeDriverTest, AnAgentThatDoesNotKnowTheOrderHasFailedAtOnce) {
  const auto driver = NewDriver();
  hosts_.SetOldAgents();
  Begin(1);
  ASSERT_TRUE(AwaitState(Upgrade::PAUSED));
  EXPECT_EQ(Stored().upgrade.gateways(0).reason(), "agent");
}

TEST_F(UpgradeDriverTest, AnAbortEndsIt) {
  const auto driver = NewDriver();
  hosts_.SetAway("gateways/g0");
  Begin(1);
  Order(admin::v1::ABORT_UPGRADE);
  EXPECT_TRUE(AwaitState(Upgrade::ABORTED));
}

TEST_F(UpgradeDriverTest, EachChangeHasAnAuditRecord) {
  const auto driver = NewDriver();
  Begin(1);
  ASSERT_TRUE(AwaitState(Upgrade::DONE));
  auto rows = store_->Range({.range = store::KeyRange::Prefix("audit/")});
  ASSERT_TRUE(rows.ok());
  std::string all;
  for (const store::Entry& entry : rows->entries) {
    admin::v1::AuditRecord record;
    ASSERT_TRUE(record.ParseFromString(entry.value));
    EXPECT_EQ(record.resource(), "upgrades/u");
    EXPECT_EQ(record.principal(), "controller");
    all += record.request();
  }
  for (const char* const change :
       {R"(["gateways/g0","WAITING","REPLACING",""])",
        R"(["gateways/g0","REPLACING","REPLACED",""])", R"(["upgrade","RUNNING","DONE",""])"})
    EXPECT_NE(all.find(change), std::string::npos) << all;
}

TEST_F(UpgradeDriverTest, ATakeOverThatNoUpgradeOrderedHasOneAuditRecord) {
  hosts_.Report("gateways/g0", 1);
  hosts_.Report("gateways/g1", 0);
  const auto is_recorded = [this] {
    auto rows = store_->Range({.range = store::KeyRange::Prefix("audit/")});
    return rows.ok() && rows->entries.size() == 1;
  };
  auto driver = NewDriver();
  ASSERT_TRUE(Await(is_recorded));
  // The controller that takes over reads what is recorded.
  driver.reset();
  driver = NewDriver();
  Begin(1);
  ASSERT_TRUE(AwaitState(Upgrade::DONE));
  auto rows = store_->Range({.range = store::KeyRange::Prefix("audit/")});
  ASSERT_TRUE(rows.ok());
  int records = 0;
  for (const store::Entry& entry : rows->entries) {
    admin::v1::AuditRecord record;
    ASSERT_TRUE(record.ParseFromString(entry.value));
    if (record.method() != "take-over") continue;
    ++records;
    EXPECT_EQ(record.resource(), "gateways/g0");
    EXPECT_EQ(record.principal(), "gateways/g0");
  }
  EXPECT_EQ(records, 1);
}

TEST_F(UpgradeDriverTest, TheBoardHasTheNewestUpgrade) {
  const auto driver = NewDriver();
  Begin(1);
  ASSERT_TRUE(AwaitState(Upgrade::DONE));
  // The driver posts after the pass that wrote the state.
  ASSERT_TRUE(Await([this] {
    const UpgradeBoard::View view = board_.Read();
    return view.upgrade.has_value() && view.upgrade->state() == Upgrade::DONE;
  }));
  const UpgradeBoard::View view = board_.Read();
  EXPECT_TRUE(view.drives);
  ASSERT_TRUE(view.upgrade.has_value());
  EXPECT_EQ(view.upgrade->state(), Upgrade::DONE);
  EXPECT_EQ(view.upgrade->gateways_size(), 0);
}

}  // namespace
}  // namespace rocegw::upgrades
