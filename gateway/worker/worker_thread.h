// SPDX-License-Identifier: Apache-2.0
// The thread around a worker: clock, busy polling, yielding and sleep. Where spinners may outnumber
// cores it yields after 8 us without work (or sleeps then, when yielding has turned out to cost a
// scheduler slice: base/late_yields.h); after 50 us without work it sleeps on one epoll set of
// ports, sessions' eventfds and its own wake descriptor.
//
// With IdlePolicy::guests other threads of the process may run rounds in its place, one at a time
// (docs/user/in_process.md). While somebody does, the worker's own thread only looks now and then
// whether it is needed again.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>

#include "gateway/base/heartbeat.h"
#include "gateway/base/status.h"
#include "gateway/worker/worker.h"

namespace rocegw::worker {

struct IdlePolicy {
  // Without work. To ask a socket takes a microsecond, a ring a tenth of that: so not rounds.
  Duration yield = Microseconds(8);  // before it yields, and between two yields
  Duration spin = Microseconds(50);  // before it sleeps
  bool yields = true;
  bool guests = false;  // other threads run rounds too
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

  // One round on the calling thread; nothing when somebody else is at it. Only with idle.guests.
  // Any thread that shares descriptors with those that made and run the worker.
  void RunGuestRound();

  const Heartbeat& heartbeat() const { return heartbeat_; }

 private:
  class AtHelm;

  WorkerThread(WorkerOptions options, IdlePolicy idle, int epoll_fd);
  void Run();
  void Rouse() const;
  void StayAway() const;
  void Sleep(TimePoint now, AtHelm& helm);
  void TakeWakes(TimePoint now);
  void HandleWakes(const epoll_event* events, int count, TimePoint now);
  void EndSleep();
  static void Watch(void* context, int fd, SessionId session, bool add);

  IdlePolicy idle_;
  int epoll_fd_;
  int wake_fd_;
  metrics::WorkerCounters* counters_;
  std::atomic<bool> stop_{false};
  // Who holds it runs the worker; all below belongs to that thread. Always the worker's own without
  // guests.
  std::atomic<bool> helm_{false};
  std::atomic<int64_t> guest_at_ns_{0};  // when one asked last
  uint32_t guest_rounds_ = 0;
  bool sleeps_ = false;                            // clients will write their eventfd
  std::unordered_set<uint32_t> watched_sessions_;  // by their eventfd
  std::unique_ptr<Worker> worker_;
  Heartbeat heartbeat_;
  std::thread thread_;
};

}  // namespace rocegw::worker
