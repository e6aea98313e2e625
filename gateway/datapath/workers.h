// SPDX-License-Identifier: Apache-2.0
// The workers and what connects them: links to the control thread, hand-over rings, counters, wake
// descriptors and threads. Control thread. All sessions must be closed before Stop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/datapath/config.h"
#include "gateway/datapath/ports.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/port/steering.h"
#include "gateway/session/state/state_rows.h"
#include "gateway/worker/worker_thread.h"

namespace rocegw::datapath {

class Workers {
 public:
  Workers() = default;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { Stop(); }

  // Makes everything but the threads, so that the links can be used. ports must outlive the
  // workers.
  Status Build(const Config& config, const port::SteeringTable& steering, const Ports& ports);
  // Starts the threads. config, steering and ports: those of Build.
  Status Run(const Config& config, const port::SteeringTable& steering, const Ports& ports);
  void Stop();

  // Runs one round of the first worker on the calling thread (Config::guest_rounds). Any thread,
  // while the workers run.
  void RunGuestRound() { workers_.front()->thread->RunGuestRound(); }

  // By worker; valid until destruction.
  std::vector<worker::WorkerLink*> links() const;
  // Valid until Stop.
  std::vector<const Heartbeat*> heartbeats() const;
  void AddRows(session::StateSnapshot& snapshot) const;

 private:
  struct One {
    explicit One(size_t workers) : inbox(workers) {}
    metrics::WorkerCounters counters;
    worker::WorkerLink link;
    worker::WorkerInbox inbox;
    std::unique_ptr<worker::WorkerThread> thread;
    UniqueFd wake_fd;
    int cpu = -1;
  };

  static std::vector<int> AllowedProcessors();

  flow::CcProfile congestion_;  // shared by all flows of all workers
  UniqueFd control_wake_fd_;
  std::vector<std::unique_ptr<One>> workers_;
};

}  // namespace rocegw::datapath
