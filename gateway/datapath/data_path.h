// SPDX-License-Identifier: Apache-2.0
// Data path of a gateway: ports, workers and sessions, made from a configuration on a given control
// loop. The parts start in this order and stop in reverse; the owner may start its own parts in
// between. Control thread. The configuration, the loop and the objects that `outside` refers to
// must outlive it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/datapath/config.h"
#include "gateway/datapath/port_backend.h"
#include "gateway/datapath/ports.h"
#include "gateway/datapath/worker_copies.h"
#include "gateway/datapath/workers.h"
#include "gateway/loop/control_loop.h"
#include "gateway/port/steering.h"
#include "gateway/session/session_server.h"

namespace rocegw::datapath {

class DataPath {
 public:
  struct Outside {
    session::Log log;
    DpdkOpener open_dpdk;  // empty: mode udp only
    // Called when a device's addresses, MTU or link changed. Programs are notified separately.
    std::function<void(const session::Device& device)> on_device_change;
    // Sockets of another process; outlives StartPorts; nullptr: none.
    InheritedFds* inherited = nullptr;
    CopyEngineOpener open_copy_engine;  // empty: there is none
    // Receives the descriptors that programs pass.
    std::shared_ptr<session::DescriptorReceiver> descriptors =
        std::make_shared<session::ReceiverHere>();
  };

  DataPath(const Config& config, ControlLoop& loop, Outside outside);
  ~DataPath();
  DataPath(const DataPath&) = delete;
  DataPath& operator=(const DataPath&) = delete;

  // Returns the number of workers that a configuration leads to on this machine.
  static size_t WorkersOf(const Config& config);

  // Errors name the part and the remedy.
  Status StartPorts();
  void StopPorts() { ports_.reset(); }
  void HandOverGids(hand_over::StateStream& state) { ports_->HandOverGids(state); }
  // Adds what the ports of a gateway before this one counted (Ports::CountsByName).
  void GoOnFrom(const Ports::Counts& counts) { ports_->GoOnFrom(counts); }
  Status StartWorkers();
  // The same in two steps: before RunWorkers, sessions and configuration can be made, and nothing
  // is received or sent.
  Status BuildWorkers();
  // `parked`: UnparkWorkers lets them act.
  Status RunWorkers(bool parked = false) { return workers_.Run(parked); }
  void StopWorkers() {
    workers_.Stop();
    copies_.Close();
  }
  // Any thread, while the workers run.
  std::vector<const Heartbeat*> worker_heartbeats() const { return workers_.heartbeats(); }
  void RunGuestRound() { workers_.RunGuestRound(); }
  // options: fields that the configuration determines are filled in here.
  void StartSessions(session::Options options);
  // Closes all sessions, which takes microseconds, and waits up to `farewell` for the peers'
  // answers to the disconnect messages. Returns false if the sessions did not close `within` that
  // time: nothing that they use may be destroyed then.
  bool StopSessions(Duration within, Duration farewell = {});

  // Stops all workers and keeps messages to them. Captures must have ended, and nothing may be on
  // its way to a worker. Then RestWorkers, which returns true when all workers rest; call it again
  // after a while until then.
  void ParkWorkers();
  bool RestWorkers();
  // Lets the workers go on.
  void UnparkWorkers();
  // Writes the state of workers that rest, or reads it into workers that do not run yet and links
  // them before with the sessions that were read. Returns the error of a worker that refused a
  // link.
  Status HandOverWorkers(hand_over::StateStream& state);
  // Links workers that do not run yet with the sessions that were read. Returns the error of a
  // worker that refused a link.
  Status LinkSessions();

  const port::SteeringTable& steering() const { return steering_; }
  // Only between StartPorts and StopPorts.
  const Ports& ports() const { return *ports_; }
  std::vector<session::Device> Devices() const;
  // nullptr: not started, or stopped.
  session::SessionServer* sessions() const { return sessions_.get(); }
  void AddRows(session::StateSnapshot& snapshot) const;

 private:
  void OnDeviceChange(const std::vector<size_t>& changed);
  void WatchOwnDevices();
  void ApplyLinks();
  bool PeersKnow() const;

  const Config& config_;
  ControlLoop& loop_;
  const Outside outside_;
  const port::SteeringTable steering_;
  std::unique_ptr<Ports> ports_;
  WorkerCopies copies_;
  Workers workers_;
  std::unique_ptr<session::SessionServer> sessions_;
  ControlLoop::WatchId monitor_watch_ = 0;
  ControlLoop::TimerId own_device_timer_ = 0;
  bool sessions_ended_ = true;
};

}  // namespace rocegw::datapath
