// SPDX-License-Identifier: Apache-2.0
// Everything between a program's queues and the network: ports, workers and sessions, made from a
// configuration on somebody's control loop. Its parts start in that order and stop in reverse;
// whoever owns it may start things of its own in between. Control thread; the configuration, the
// loop and what `outside` refers to outlive it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/datapath/config.h"
#include "gateway/datapath/port_backend.h"
#include "gateway/datapath/ports.h"
#include "gateway/datapath/workers.h"
#include "gateway/port/steering.h"
#include "gateway/session/control_loop.h"
#include "gateway/session/session_server.h"

namespace rocegw::datapath {

class DataPath {
 public:
  struct Outside {
    session::Log log;
    DpdkOpener open_dpdk;  // empty: mode udp alone
    // Addresses, MTU or link of a device changed; its programs hear of it themselves.
    std::function<void(const session::Device& device)> on_device_change;
  };

  DataPath(const Config& config, session::ControlLoop& loop, Outside outside);
  ~DataPath();
  DataPath(const DataPath&) = delete;
  DataPath& operator=(const DataPath&) = delete;

  // Errors name the part and the remedy.
  Status StartPorts();
  void StopPorts() { ports_.reset(); }
  Status StartWorkers();
  void StopWorkers() { workers_.Stop(); }
  // Any thread, while the workers run.
  std::vector<const Heartbeat*> worker_heartbeats() const { return workers_.heartbeats(); }
  void RunGuestRound() { workers_.RunGuestRound(); }
  // options: what the configuration says is filled in here.
  void StartSessions(session::Options options);
  // Ends all sessions, which takes microseconds, and waits up to `farewell` until the peers of
  // their connections have answered to that. False: the sessions did not end `within` that time,
  // and nothing that they use may be destroyed.
  bool StopSessions(Duration within, Duration farewell = {});

  const port::SteeringTable& steering() const { return steering_; }
  // Between StartPorts and StopPorts.
  const Ports& ports() const { return *ports_; }
  std::vector<session::Device> Devices() const;
  // nullptr: not started, or stopped.
  session::SessionServer* sessions() const { return sessions_.get(); }
  void AddRows(session::StateSnapshot& snapshot) const;

 private:
  void OnAddressChange();
  bool PeersKnow() const;

  const Config& config_;
  session::ControlLoop& loop_;
  const Outside outside_;
  const port::SteeringTable steering_;
  std::unique_ptr<Ports> ports_;
  Workers workers_;
  std::unique_ptr<session::SessionServer> sessions_;
  session::ControlLoop::WatchId monitor_watch_ = 0;
  bool sessions_ended_ = true;
};

}  // namespace rocegw::datapath
