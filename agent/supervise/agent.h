// SPDX-License-Identifier: Apache-2.0
// Agent: its core between a controller and a gateway, with their connections, the controller's
// questions, certificate renewal and the last good configuration on disk. Created, called and
// destroyed on its loop. Loop, identity and gateway outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "agent/donors/donor_office.h"
#include "agent/migration/adapter_calls.h"
#include "agent/node/node_identity.h"
#include "agent/probe/probes.h"
#include "agent/reconcile/agent_core.h"
#include "agent/reconcile/gateway_port.h"
#include "agent/sync/controller_link.h"
#include "agent/sync/fleet_key_file.h"
#include "agent/upgrade/gateway_replacement.h"
#include "controlplane/identity/clock_watch.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

// Counters for other threads.
struct AgentCounters {
  std::atomic<bool> controller_connected{false};
  std::atomic<bool> gateway_connected{false};
  std::atomic<bool> in_sync{false};
  std::atomic<bool> unadopted{false};
  std::atomic<int64_t> desired_revision{0};
  std::atomic<int64_t> applied_revision{0};
  std::atomic<int64_t> certificate_expires{0};  // seconds since 1970
  std::atomic<int64_t> fleet_keys_taken{0};     // seconds since 1970; 0: never
  std::atomic<uint64_t> rejections{0};
  std::atomic<uint64_t> pushes{0};
  std::atomic<uint64_t> applies{0};
  std::atomic<uint64_t> failed_applies{0};
  std::atomic<uint64_t> reconnects{0};
  std::atomic<uint64_t> renewals{0};
  std::atomic<uint64_t> questions{0};
  DonorCounters donors;
};

struct AgentOptions {
  std::string version;
  // File of the last good configuration; empty: none.
  std::string state_file;
  // File for the keys of the fleet; empty: the agent takes none.
  std::string fleet_keys_file;
  // Folder in which donors of memory announce themselves; empty: none are reported.
  std::string donors_dir;
  Duration probe_every = Seconds(2);
  // Directory of programs that the agent starts: rocegw-run, rocegw-probe.
  std::string program_folder;
  // Adapters of storage systems, for migrations.
  AdapterCalls::Options adapters;
};

class Agent final : private AgentActions {
 public:
  Agent(ControlLoop& loop, NodeIdentity& identity, GatewayPort& gateway, AgentOptions options);
  ~Agent() override;
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  const AgentCounters& counters() const { return counters_; }
  // Returns true if the loop was stopped because the clock was set back far: the process should
  // restart.
  bool wants_to_start_anew() const { return start_anew_; }

 private:
  void Send(const fleet::v1::SyncRequest& message) override;
  void Apply(const types::v1::Push& push) override;
  void Save(const DesiredConfig& config) override;

  void Restore();
  // Returns a channel to the current controller.
  std::shared_ptr<grpc::Channel> Channel();
  void Connect();
  void AddOwnDiagnoses(gateway::v1::DiagnoseResponse& response) const;
  // Reports that the controller accepted the stream.
  void OnAccepted();
  void OnQuestion(const fleet::v1::TunnelQuestion& question);
  // Drops the questions of a closed tunnel.
  void DropQuestions();
  void OnClosed(const grpc::Status& status);
  void Probe();
  void OnProbe(const StatusOr<GatewayProbe>& probe);
  void LookAtConfig();
  void GatewayGone(const std::string& why);
  void Tick();
  void Renew();
  void Note();

  ControlLoop& loop_;
  NodeIdentity& identity_;
  GatewayPort& gateway_;
  const AgentOptions options_;
  AgentCounters counters_;
  AgentCore core_;
  Probes probes_;
  AdapterCalls adapter_calls_;
  GatewayReplacement replacement_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<ControllerLink> link_;
  FleetKeyFile fleet_key_file_;
  DonorOffice donor_office_;
  uint64_t tunnel_ = 0;    // counts the tunnels, so that answers go to their own tunnel
  size_t controller_ = 0;  // index of the current controller
  int64_t gateway_started_ns_ = 0;
  std::string last_problem_;  // problem with the controller; logged once
  std::string last_invalid_;  // problem with the certificate; logged once
  identity::ClockWatch clock_;
  bool start_anew_ = false;
  bool renewing_ = false;
  identity::TimePoint renew_again_;  // earliest time of the next attempt
  ControlLoop::TimerId probe_timer_ = 0;
  ControlLoop::TimerId tick_timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
