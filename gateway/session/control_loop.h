// SPDX-License-Identifier: Apache-2.0
// The event loop of the control thread: descriptors (epoll(7), level triggered), deadlines, and
// tasks that other threads hand in. Handlers never block. Everything but Post and Stop is for the
// control thread alone; a handler may remove any watch or timer, its own included.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "gateway/base/containers/kept_nodes.h"
#include "gateway/base/heartbeat.h"
#include "gateway/base/late_yields.h"
#include "gateway/base/monotonic_clock.h"
#include "gateway/base/status.h"
#include "gateway/base/time.h"
#include "gateway/base/unique_fd.h"

struct epoll_event;

namespace rocegw::session {

// What a loop's thread looks at besides descriptors. Nobody writes a descriptor for it while the
// loop is awake.
class LoopSource {
 public:
  virtual ~LoopSource() = default;
  virtual bool HasWork() const = 0;
  virtual void Work() = 0;
  // False: work that comes from now on is announced on a watched descriptor; what came before is
  // seen by HasWork.
  virtual void SetAwake(bool awake) = 0;
};

class ControlLoop {
 public:
  using WatchId = uint64_t;  // 0: none
  using TimerId = uint64_t;  // 0: none

  ControlLoop();
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;

  Status Open();

  // events: EPOLLIN and so on; errors and hang-ups are always reported. The descriptor stays the
  // caller's and must be unwatched before it is closed. 0 when the system refuses.
  WatchId Watch(int fd, uint32_t events, std::function<void(uint32_t events)> handler);
  void Rearm(WatchId id, uint32_t events);
  void Unwatch(WatchId id);

  TimerId At(TimePoint deadline, std::function<void()> handler);
  void Cancel(TimerId id);

  // Runs after each round of handlers.
  void AfterRound(std::function<void()> hook) { after_round_ = std::move(hook); }

  // Looked at in each round; nullptr: nothing. Stays the caller's.
  void LookAt(LoopSource* source) { source_ = source; }

  // Any thread: runs `task` on the control thread. False when the loop has ended; the task is
  // dropped then.
  bool Post(std::function<void()> task);

  // Beats in each round, on the thread that ran the first one.
  const Heartbeat& heartbeat() const { return heartbeat_; }

  // One round: waits at most `wait` for something to do.
  void RunOnce(Duration wait);
  // Until Stop; then tasks that were posted before have run.
  void Run();
  // Any thread.
  void Stop();

  // CLOCK_MONOTONIC.
  static TimePoint Now() { return MonotonicNow(); }

 private:
  struct Watched {
    int fd;
    std::function<void(uint32_t)> handler;
  };

  bool SourceHasWork() const;
  int Await(epoll_event* events, int most, Duration wait);
  int Linger(epoll_event* events, int most);
  bool RunTasks();
  void RunTimers();
  int WaitMilliseconds(Duration wait) const;

  UniqueFd epoll_;
  UniqueFd wake_;
  uint64_t next_id_ = 1;
  std::unordered_map<WatchId, std::shared_ptr<Watched>> watches_;
  using Timers = std::multimap<TimePoint, std::pair<TimerId, std::function<void()>>>;
  using TimerDeadlines = std::unordered_map<TimerId, TimePoint>;
  Timers timers_;
  TimerDeadlines timer_deadlines_;
  KeptNodes<Timers> kept_timers_;
  KeptNodes<TimerDeadlines> kept_deadlines_;
  std::vector<TimerId> due_;
  std::function<void()> after_round_;
  LoopSource* source_ = nullptr;
  bool worked_ = false;  // in the last round
  LateYields late_yields_;
  Heartbeat heartbeat_;

  std::mutex mutex_;  // guards the two below
  std::vector<std::function<void()>> tasks_;
  bool ended_ = false;
  std::atomic<bool> stop_{false};
};

}  // namespace rocegw::session
