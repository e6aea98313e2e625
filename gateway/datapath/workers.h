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
#include "gateway/datapath/worker_copies.h"
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

  // Makes everything but the threads. Until Run the caller may use the workers and their links.
  // ports and copies must outlive the workers.
  Status Build(const Config& config, const port::SteeringTable& steering, const Ports& ports,
               const WorkerCopies& copies);
  // Starts the threads, parked if the workers may not act yet.
  Status Run(bool parked = false);
  void Stop();

  // Stop all threads at the end of an iteration; start them again (WorkerThread::Park).
  void Park();
  bool are_parked() const;
  void Unpark();
  size_t count() const { return workers_.size(); }
  // Only before Run or while the threads are parked.
  worker::Worker& worker(size_t index) { return workers_[index]->thread->worker(); }

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
    uint32_t engine_minimum = 0;
  };

  static std::vector<int> AllowedProcessors();
  Status Make(const Config& config, const port::SteeringTable& steering, const Ports& ports,
              const WorkerCopies& copies);

  flow::CcProfile congestion_;  // shared by all flows of all workers
  UniqueFd control_wake_fd_;
  std::vector<std::unique_ptr<One>> workers_;
};

}  // namespace rocegw::datapath
