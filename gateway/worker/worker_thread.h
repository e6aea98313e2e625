// SPDX-License-Identifier: Apache-2.0
// The thread around a worker: clock, busy polling, yielding and sleep. Where spinners may outnumber
// cores it yields after 64 iterations without work (or sleeps then, when yielding has turned out to
// cost a scheduler slice); after 50 us without work it sleeps on one epoll set of ports, sessions'
// eventfds and its own wake descriptor.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "gateway/base/status.h"
#include "gateway/worker/worker.h"

namespace rocegw::worker {

struct IdlePolicy {
  uint32_t spins_before_yield = 64;  // 0: never yields
  Duration spin = Microseconds(50);  // without work, before it sleeps
};

// CLOCK_MONOTONIC.
TimePoint MonotonicNow();

class WorkerThread {
 public:
  // options.watch is set here. cpu: -1 does not pin.
  static StatusOr<std::unique_ptr<WorkerThread>> Start(WorkerOptions options, IdlePolicy idle,
                                                       int cpu);
  // Ends the loop and joins. What is linked stays linked: unlink sessions before.
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

 private:
  WorkerThread(WorkerOptions options, IdlePolicy idle, int epoll_fd);
  void Run();
  void Sleep(TimePoint now);
  void TakeWakes(Duration timeout, TimePoint now);
  static void Watch(void* context, int fd, SessionId session, bool add);

  IdlePolicy idle_;
  int epoll_fd_;
  int wake_fd_;
  metrics::WorkerCounters* counters_;
  std::atomic<bool> stop_{false};
  std::unordered_map<uint32_t, int> session_fds_;
  std::unique_ptr<Worker> worker_;
  std::thread thread_;
};

}  // namespace rocegw::worker
