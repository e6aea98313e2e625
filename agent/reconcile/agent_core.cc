// SPDX-License-Identifier: Apache-2.0
#include "agent/reconcile/agent_core.h"

#include <utility>

namespace rocegw::agent {

using types::v1::Push;
using types::v1::PushReport;

void AgentCore::OnStreamOpened(TimePoint now) {
  stream_open_ = true;
  owed_nonce_.clear();
  fleet::v1::SyncRequest message;
  fleet::v1::Hello& hello = *message.mutable_hello();
  hello.set_gateway(gateway_);
  hello.set_agent_version(version_);
  hello.set_store_uuid(running_.store_uuid());
  hello.set_applied_revision(running_.applied_revision());
  *hello.mutable_rejections() = running_.rejections();
  if (in_sync()) hello.set_objects_digest(desired_.Digest());
  actions_.Send(message);
  SendHeartbeat(now);
}

void AgentCore::OnStreamClosed() {
  stream_open_ = false;
  owed_nonce_.clear();
  desired_.DropParts();
  in_parts_ = false;
}

void AgentCore::OnPush(const Push& push) {
  const int64_t before = desired_.revision();
  const std::string store_before = desired_.store_uuid();
  const DesiredConfig::Verdict verdict = desired_.Take(push);
  if (verdict == DesiredConfig::Verdict::kIncomplete) {
    in_parts_ = true;
    return;
  }
  const bool in_parts = std::exchange(in_parts_, false);
  owed_nonce_ = push.nonce();
  stranger_ = verdict == DesiredConfig::Verdict::kUnadopted;
  if (verdict != DesiredConfig::Verdict::kTaken) {
    PushReport report = running_;
    report.set_status(verdict == DesiredConfig::Verdict::kUnadopted ? types::v1::UNADOPTED
                                                                    : types::v1::NEED_FULL);
    return Answer(std::move(report));
  }
  unadopted_ = false;
  // A delta in one part can be passed on to a gateway that runs its base. A delta in several parts
  // is not passed on: the gateway could restart between two of them.
  delta_.reset();
  const bool builds_on_running = running_.store_uuid() == store_before &&
                                 running_.applied_revision() == before &&
                                 running_.store_uuid() == push.store_uuid();
  if (!push.full() && !in_parts && builds_on_running && push.base_revision() == before)
    delta_ = push;
  Reconcile();
}

bool AgentCore::in_sync() const {
  return running_.store_uuid() == desired_.store_uuid() &&
         running_.applied_revision() == desired_.revision();
}

bool AgentCore::IsBehind() const {
  return sent_store_ != desired_.store_uuid() || sent_revision_ != desired_.revision();
}

void AgentCore::Reconcile() {
  if (!gateway_up_ || applying_ || unadopted_ || desired_.store_uuid().empty()) return;
  // The last applied state may not have reached the disk before the agent's end: the controller
  // knows better.
  const bool newer = running_.store_uuid() == desired_.store_uuid() &&
                     running_.applied_revision() > desired_.revision();
  if (newer && owed_nonce_.empty()) return;
  if (in_sync() && owed_nonce_.empty()) return;
  applying_ = true;
  Push push = delta_.has_value() ? std::move(*delta_) : desired_.Full();
  delta_.reset();
  sent_full_ = push.full();
  sent_store_ = push.store_uuid();
  sent_revision_ = push.revision();
  actions_.Apply(push);
}

void AgentCore::OnGatewayUp(const gateway::v1::GetConfigResponse& config) {
  gateway_up_ = true;
  applying_ = false;
  running_.Clear();
  if (config.source() != "static") running_.set_store_uuid(config.source());
  running_.set_applied_revision(config.applied_revision());
  *running_.mutable_rejections() = config.rejections();
  const bool fits = delta_.has_value() && delta_->store_uuid() == running_.store_uuid() &&
                    delta_->base_revision() == running_.applied_revision();
  if (!fits) delta_.reset();
  Reconcile();
}

void AgentCore::OnGatewayDown(TimePoint now) {
  gateway_up_ = false;
  applying_ = false;
  delta_.reset();
  status_.set_gateway_connected(false);
  SendHeartbeat(now);
}

void AgentCore::OnApplyFailed() {
  applying_ = false;
  delta_.reset();
}

void AgentCore::OnApplied(const PushReport& report) {
  applying_ = false;
  if (report.status() == types::v1::NEED_FULL) {
    // The gateway runs another state than it reported; the whole state corrects that. A gateway
    // that refuses that too is asked again after its state was read again.
    running_.Clear();
    if (!sent_full_) Reconcile();
    return;
  }
  running_ = report;
  unadopted_ = report.status() == types::v1::UNADOPTED;
  if (report.status() == types::v1::APPLIED && in_sync()) {
    desired_.Confirm();
    unsaved_ = true;
  }
  // A newer push arrived meanwhile: the answer comes with that one.
  if (!unadopted_ && IsBehind()) return Reconcile();
  Answer(report);
}

void AgentCore::Answer(PushReport report) {
  if (!stream_open_ || owed_nonce_.empty()) return;
  report.set_nonce(std::exchange(owed_nonce_, {}));
  fleet::v1::SyncRequest message;
  *message.mutable_report() = std::move(report);
  actions_.Send(message);
}

void AgentCore::OnGatewayStatus(const fleet::v1::Heartbeat& status, TimePoint now) {
  fleet::v1::Heartbeat fresh = status;
  fresh.set_gateway_connected(true);
  // Totals change all the time; they are sent with the next heartbeat.
  const auto lasting = [](fleet::v1::Heartbeat heartbeat) {
    heartbeat.clear_totals();
    heartbeat.clear_pools();
    return heartbeat.SerializeAsString();
  };
  const bool news = lasting(fresh) != lasting(status_);
  status_ = std::move(fresh);
  if (news) SendHeartbeat(now);
}

void AgentCore::Tick(TimePoint now) {
  if (std::exchange(unsaved_, false)) actions_.Save(desired_);
  if (stream_open_ && now >= next_heartbeat_) SendHeartbeat(now);
}

void AgentCore::SendHeartbeat(TimePoint now) {
  if (!stream_open_) return;
  fleet::v1::SyncRequest message;
  *message.mutable_heartbeat() = status_;
  actions_.Send(message);
  next_heartbeat_ = now + kHeartbeat;
}

}  // namespace rocegw::agent
