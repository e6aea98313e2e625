// SPDX-License-Identifier: Apache-2.0
// Core of the agent between its controller and its gateway, without their connections. Pushes are
// passed to the gateway one at a time and answered with their result; a restarted gateway gets the
// whole configuration again, with or without a controller. Time and events are arguments. One
// thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/reconcile/desired_config.h"
#include "gateway/base/time.h"
#include "rocegw/fleet/v1/node.pb.h"
#include "rocegw/gateway/v1/config.pb.h"

namespace rocegw::agent {

// Actions of the core. Called within its methods; must not call it back.
class AgentActions {
 public:
  virtual ~AgentActions() = default;
  // Sends to the controller; only between OnStreamOpened and OnStreamClosed.
  virtual void Send(const fleet::v1::SyncRequest& message) = 0;
  // Applies a push at the gateway; one at a time, answered by OnApplied or ended by OnGatewayDown.
  virtual void Apply(const types::v1::Push& push) = 0;
  // Replaces the configuration on disk; called within Tick, at most once however often it changed.
  virtual void Save(const DesiredConfig& config) = 0;
};

class AgentCore {
 public:
  // A heartbeat is sent when it has news, and at the latest after this time.
  static constexpr Duration kHeartbeat = Seconds(30);

  AgentCore(std::string gateway, std::string version, AgentActions& actions)
      : gateway_(std::move(gateway)), version_(std::move(version)), actions_(actions) {}

  // Restores what Save stored in an earlier run.
  void Restore(const types::v1::AppliedConfig& saved) { desired_.Restore(saved); }

  // Events of the controller's stream.
  void OnStreamOpened(TimePoint now);
  void OnPush(const types::v1::Push& push);
  void OnStreamClosed();

  // Reports that the gateway answers, and what it runs.
  void OnGatewayUp(const gateway::v1::GetConfigResponse& config);
  void OnGatewayDown(TimePoint now);
  void OnApplied(const types::v1::PushReport& report);
  // Reports that the gateway did not accept the push; it is tried again when the gateway is up
  // again.
  void OnApplyFailed();
  // Reports the gateway's status.
  void OnGatewayStatus(const fleet::v1::Heartbeat& status, TimePoint now);

  // Saves the applied configuration and sends heartbeats; call periodically.
  void Tick(TimePoint now);

  bool stream_open() const { return stream_open_; }
  bool gateway_up() const { return gateway_up_; }
  // Returns true if the gateway runs the controller's latest configuration.
  bool in_sync() const;
  int64_t desired_revision() const { return desired_.revision(); }
  int64_t applied_revision() const { return running_.applied_revision(); }
  size_t rejections() const { return static_cast<size_t>(running_.rejections_size()); }
  // Returns true if the controller's store is another than the gateway's, which keeps its
  // configuration.
  bool unadopted() const { return unadopted_ || stranger_; }

 private:
  void Answer(types::v1::PushReport report);
  // Returns true if the desired configuration was not passed to the gateway yet.
  bool IsBehind() const;
  // Passes the desired configuration to the gateway if that runs another one and is not busy.
  void Reconcile();
  void SendHeartbeat(TimePoint now);

  const std::string gateway_;
  const std::string version_;
  AgentActions& actions_;
  DesiredConfig desired_;
  bool stream_open_ = false;
  std::string owed_nonce_;                // nonce of the push that must be answered; empty: none
  std::optional<types::v1::Push> delta_;  // changes from the gateway's state to the desired one
  bool in_parts_ = false;                 // parts of a push have arrived, more follow
  bool gateway_up_ = false;
  bool applying_ = false;
  bool sent_full_ = false;  // the push being applied is full
  std::string sent_store_;
  int64_t sent_revision_ = 0;
  bool unsaved_ = false;
  bool unadopted_ = false;         // the gateway refused the desired store
  bool stranger_ = false;          // the newest push was of another store than the desired one
  types::v1::PushReport running_;  // state of the gateway
  fleet::v1::Heartbeat status_;
  TimePoint next_heartbeat_;
};

}  // namespace rocegw::agent
