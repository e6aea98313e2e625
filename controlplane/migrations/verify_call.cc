// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/verify_call.h"

#include <algorithm>
#include <utility>

#include "controlplane/migrations/nodes/node_answers.h"
#include "controlplane/migrations/nodes/node_call.h"
#include "controlplane/migrations/order_call.h"
#include "gateway/base/foreign_text.h"

namespace rocegw::migrations {
namespace {

using migration::Verdict;

constexpr size_t kLongestReason = 512;

std::string WaveOf(const migration::Plan& plan, uint32_t node) {
  for (const migration::Wave& wave : plan.waves) {
    if (std::ranges::find(wave.nodes, node) != wave.nodes.end()) return wave.name;
  }
  return {};
}

std::string TextOf(const std::optional<migration::Transport>& transport) {
  return transport.has_value() ? std::string(WordOf(*transport)) : std::string();
}

// Returns true if the node has stood for the same transport all the time.
bool IsAsBefore(const migration::NodeRecord& before, const migration::NodeRecord& now) {
  if (before.state == migration::NodeState::kSoaking && now.state == migration::NodeState::kDone)
    return true;
  return before.state == now.state && before.since == now.since;
}

}  // namespace

VerifyCall::VerifyCall(store::Store& store, NodeAccess& nodes,
                       admin::v1::VerifyMigrationRequest request, store::Operation audit,
                       std::chrono::seconds time, admin::v1::VerifyMigrationResponse* response,
                       Done done)
    : store_(store),
      nodes_(nodes),
      request_(std::move(request)),
      id_(request_.name().substr(request_.name().find('/') + 1)),
      audit_(std::move(audit)),
      time_(time),
      response_(response),
      done_(std::move(done)) {}

void VerifyCall::Refuse(const api::ApiError& error) { done_(api::ToStatus(error)); }

void VerifyCall::Start() { Read(&VerifyCall::Ask); }

void VerifyCall::Read(Then then) {
  const auto on_rows = [self = shared_from_this(), then](const StatusOr<store::RangeResult>& rows) {
    if (!rows.ok()) return self->Refuse(api::FromStore(rows.status()));
    if (rows.value().entries.empty()) return self->Refuse(api::NotFound(self->request_.name()));
    std::string problem;
    StoredMigration stored = ReadMigration(self->id_, rows.value().entries, problem);
    if (!problem.empty()) return self->Refuse(Unreadable(self->request_.name(), problem));
    (self.get()->*then)(std::move(stored));
  };
  store_.RangeAsync({.range = store::KeyRange::Prefix(PrefixOf(id_))}, on_rows);
}

void VerifyCall::Ask(StoredMigration stored) {
  stored_ = std::move(stored);
  for (const std::string& name : request_.nodes()) {
    const auto& nodes = stored_.plan.nodes;
    const auto found = std::ranges::find(nodes, name, &migration::PlannedNode::name);
    if (found == nodes.end())
      return Refuse(api::InvalidArgument({{"nodes", "has a name that is not of the plan"}}));
    asked_.push_back({.node = static_cast<uint32_t>(found - nodes.begin())});
  }
  store::Transaction record;
  record.then = {std::move(audit_)};
  store_.TxnAsync(std::move(record),
                  [self = shared_from_this()](const StatusOr<store::TransactionResult>& written) {
                    if (!written.ok()) return self->Refuse(api::FromStore(written.status()));
                    self->AskNodes();
                  });
}

void VerifyCall::AskNodes() {
  // The count is one more than there are nodes: no answer ends the call before each node was asked.
  waiting_ = asked_.size() + 1;
  for (size_t at = 0; at < asked_.size(); ++at) {
    const uint32_t node = asked_[at].node;
    const auto claim = ClaimOf(stored_.plan, node, stored_.record.nodes[node]);
    if (!claim.has_value()) {
      OnAnswer(at, {});
      continue;
    }
    fleet::v1::MigrationCall call = CallFor(stored_, node, std::string(WordOf(claim->question)));
    call.mutable_time_limit()->set_seconds(time_.count());
    nodes_.Call(
        stored_.plan.nodes[node].name, call, time_,
        [self = shared_from_this(), at](const NodeAnswer& answer) { self->OnAnswer(at, answer); });
  }
  bool over = false;
  {
    const std::lock_guard lock(mutex_);
    over = --waiting_ == 0;
  }
  if (over) Read(&VerifyCall::Conclude);
}

void VerifyCall::OnAnswer(size_t at, const NodeAnswer& answer) {
  bool over = false;
  {
    const std::lock_guard lock(mutex_);
    Asked& asked = asked_[at];
    if (answer.code != 0) {
      asked.verification = {Verdict::kUnknown,
                            ForeignText(answer.message.substr(0, kLongestReason))};
    } else {
      const migration::StepResult result = ResultOf({.node = asked.node, .answer = answer});
      asked.verification =
          JudgeClaim(stored_.plan, asked.node, stored_.record.nodes[asked.node], result);
      asked.evidence = result.evidence;
    }
    over = --waiting_ == 0;
  }
  if (over) Read(&VerifyCall::Conclude);
}

void VerifyCall::Conclude(StoredMigration now) {
  for (Asked& asked : asked_) {
    // A migration of this name may have been deleted and made anew meanwhile.
    const bool known = asked.node < now.record.nodes.size() && now.created == stored_.created;
    const migration::NodeRecord& before = stored_.record.nodes[asked.node];
    const bool same = known && IsAsBefore(before, now.record.nodes[asked.node]);
    if (!same && asked.verification.verdict != Verdict::kNoClaim)
      asked.verification = {Verdict::kUnknown, "the state of the node changed meanwhile"};
    admin::v1::NodeVerification& node = *response_->add_nodes();
    node.set_node(stored_.plan.nodes[asked.node].name);
    node.set_wave(WaveOf(stored_.plan, asked.node));
    node.set_state(std::string(WordOf(before.state)));
    if (const auto claim = ClaimOf(stored_.plan, asked.node, before); claim.has_value())
      node.set_expected(std::string(WordOf(claim->transport)));
    node.set_stated(TextOf(asked.evidence.stated));
    node.set_counted(TextOf(asked.evidence.counted));
    node.set_verdict(std::string(WordOf(asked.verification.verdict)));
    node.set_reason(asked.verification.reason);
  }
  done_(grpc::Status::OK);
}

}  // namespace rocegw::migrations
