// SPDX-License-Identifier: Apache-2.0
// Thread of a worker: clock, rounds, and what it does between rounds, which
// base/timing/wait_policy.h decides. It sleeps on one epoll set of ports, sessions' eventfds and
// its own wake descriptor.
//
// With WorkerWaiting::guests, other threads of the process may run rounds instead, one at a time
// (docs/user/in_process.md). While guests run rounds, the worker's own thread only checks now and
// then whether it is needed again.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>

#include "gateway/base/status.h"
#include "gateway/base/timing/heartbeat.h"
#include "gateway/base/timing/wait_policy.h"
#include "gateway/worker/schedule/thread_scheduling.h"
#include "gateway/worker/worker.h"

namespace rocegw::worker {

// How the thread of a worker waits and is scheduled.
struct WorkerWaiting {
  WaitParameters policy;
  SchedulingParameters scheduling;
  bool guests = false;  // other threads run rounds too
};

class WorkerThread {
 public:
  // Makes the worker and starts its thread. options.watch is set here. cpu: -1 does not pin.
  static StatusOr<std::unique_ptr<WorkerThread>> Start(WorkerOptions options, WorkerWaiting waiting,
                                                       int cpu);
  // The same in two steps. In between the caller may use the worker.
  static StatusOr<std::unique_ptr<WorkerThread>> Make(WorkerOptions options, WorkerWaiting waiting);
  Status Begin(int cpu);
  // Stops the loop and joins the thread. Unlink all sessions before.
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // Runs one round on the calling thread, or nothing if another thread runs one. Only with
  // waiting.guests. Any thread that shares descriptors with the threads that made and run the
  // worker.
  void RunGuestRound();

  // Stops the thread at the end of an iteration; it only beats then. After is_parked the caller may
  // use the worker, until Unpark. One caller at a time.
  void Park();
  bool is_parked() const {
    return parked_.load(std::memory_order_acquire) == park_.load(std::memory_order_relaxed);
  }
  void Unpark();
  // Only before Begin, or while the thread is parked.
  Worker& worker() { return *worker_; }

  const Heartbeat& heartbeat() const { return heartbeat_; }

 private:
  class RunLock;

  WorkerThread(WorkerOptions options, WorkerWaiting waiting, int epoll_fd);
  void Run();
  void StayParked(uint32_t number);
  void Rouse() const;
  void StayAway() const;
  void Yield(TimePoint now, RunLock& lock);
  void Sleep(TimePoint now, RunLock& lock);
  Duration SleepLimit(TimePoint now) const;
  void TakeWakes(TimePoint now);
  void HandleWakes(const epoll_event* events, int count, TimePoint now);
  void EndSleep();
  static void Watch(void* context, int fd, SessionId session, bool add);

  const WorkerWaiting waiting_;
  WaitPolicy policy_;
  WakeLatencyRequest wake_latency_;
  int epoll_fd_;
  int wake_fd_;
  metrics::WorkerCounters* counters_;
  std::atomic<bool> stop_{false};
  // Odd: the thread is to stay parked. Equal: it is, and another thread may use the worker.
  std::atomic<uint32_t> park_{0};
  std::atomic<uint32_t> parked_{0};
  // Run lock: its holder runs the worker and owns all members below. Without guests the worker's
  // own thread always holds it.
  std::atomic<bool> run_lock_{false};
  std::atomic<int64_t> guest_at_ns_{0};  // time of the last guest's attempt
  uint32_t guest_rounds_ = 0;
  bool sleeps_ = false;                            // clients write their eventfd
  std::unordered_set<uint32_t> watched_sessions_;  // sessions whose eventfd is watched
  std::unique_ptr<Worker> worker_;
  Heartbeat heartbeat_;
  std::thread thread_;
};

}  // namespace rocegw::worker
