// SPDX-License-Identifier: Apache-2.0
// The agent between its controller and its gateway, without their connections: pushes come in, are
// handed to the gateway one at a time, and answered with what became of them; a gateway that starts
// anew gets the whole configuration again, whether the controller can be reached or not. Time and
// events are arguments. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/reconcile/desired_config.h"
#include "gateway/base/time.h"
#include "rocegw/fleet/v1/node.pb.h"
#include "rocegw/gateway/v1/config.pb.h"

namespace rocegw::agent {

// What the core wants done. Called within its methods; must not call it back.
class AgentActions {
 public:
  virtual ~AgentActions() = default;
  // To the controller; only between OnStreamOpened and OnStreamClosed.
  virtual void Send(const fleet::v1::SyncRequest& message) = 0;
  // To the gateway; one at a time, answered by OnApplied or ended by OnGatewayDown.
  virtual void Apply(const types::v1::Push& push) = 0;
  // To the disk, in place of what was there; within Tick, however often it changed since. What is
  // to be written is not put together for who keeps nothing.
  virtual void Save(const DesiredConfig& config) = 0;
};

class AgentCore {
 public:
  // A heartbeat is sent when it tells something new, and at the latest after this time.
  static constexpr Duration kHeartbeat = Seconds(30);

  AgentCore(std::string gateway, std::string version, AgentActions& actions)
      : gateway_(std::move(gateway)), version_(std::move(version)), actions_(actions) {}

  // What Save was given in an earlier life.
  void Restore(const types::v1::AppliedConfig& saved) { desired_.Restore(saved); }

  // The controller's end.
  void OnStreamOpened(TimePoint now);
  void OnPush(const types::v1::Push& push);
  void OnStreamClosed();

  // The gateway's end: it answers, and this is what it runs.
  void OnGatewayUp(const gateway::v1::GetConfigResponse& config);
  void OnGatewayDown(TimePoint now);
  void OnApplied(const types::v1::PushReport& report);
  // The gateway did not take the push at all; it is tried again when it is up again.
  void OnApplyFailed();
  // What it says of itself.
  void OnGatewayStatus(const fleet::v1::Heartbeat& status, TimePoint now);

  // Now and then: what was applied is saved here, and heartbeats go out.
  void Tick(TimePoint now);

  bool stream_open() const { return stream_open_; }
  bool gateway_up() const { return gateway_up_; }
  // The gateway runs what the controller wanted last.
  bool in_sync() const;
  int64_t desired_revision() const { return desired_.revision(); }
  int64_t applied_revision() const { return running_.applied_revision(); }
  size_t rejections() const { return static_cast<size_t>(running_.rejections_size()); }
  // The controller follows another store than the gateway, which keeps what it has.
  bool unadopted() const { return unadopted_ || stranger_; }

 private:
  void Answer(types::v1::PushReport report);
  // What is wanted is not what was handed to the gateway last.
  bool IsBehind() const;
  // Hands the gateway what is wanted, when it runs something else and is not busy.
  void Reconcile();
  void SendHeartbeat(TimePoint now);

  const std::string gateway_;
  const std::string version_;
  AgentActions& actions_;
  DesiredConfig desired_;
  bool stream_open_ = false;
  std::string owed_nonce_;  // of the push that must be answered; empty: none
  std::optional<types::v1::Push>
      delta_;              // that brings the gateway from its state to the desired one
  bool in_parts_ = false;  // parts of a push have come, more follow
  bool gateway_up_ = false;
  bool applying_ = false;
  bool sent_full_ = false;  // of what is being applied
  std::string sent_store_;
  int64_t sent_revision_ = 0;
  bool unsaved_ = false;
  bool unadopted_ = false;         // the gateway refused the desired store
  bool stranger_ = false;          // the newest push was of another store than the desired one
  types::v1::PushReport running_;  // what the gateway runs
  fleet::v1::Heartbeat status_;
  TimePoint next_heartbeat_;
};

}  // namespace rocegw::agent
