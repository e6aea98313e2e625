// SPDX-License-Identifier: Apache-2.0
// Event loop of the control thread: descriptors (epoll(7), level triggered), deadlines, and tasks
// from other threads. Handlers never block. All calls except Post and Stop belong to the control
// thread; a handler may remove any watch or timer, its own included.
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
#include "gateway/base/status.h"
#include "gateway/base/time.h"
#include "gateway/base/timing/heartbeat.h"
#include "gateway/base/timing/late_yields.h"
#include "gateway/base/timing/monotonic_clock.h"
#include "gateway/base/unique_fd.h"

struct epoll_event;

namespace rocegw {

// Source of work without a descriptor, which the loop polls. It signals its descriptor only while
// the loop sleeps.
class LoopSource {
 public:
  virtual ~LoopSource() = default;
  virtual bool HasWork() const = 0;
  virtual void Work() = 0;
  // false: later work is announced on a watched descriptor; earlier work is found by HasWork.
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

  // Watches a descriptor. `events`: EPOLLIN and so on; errors and hang-ups are always reported. The
  // caller keeps the descriptor and must unwatch it before closing it. Returns 0 if the system
  // refuses.
  WatchId Watch(int fd, uint32_t events, std::function<void(uint32_t events)> handler);
  void Rearm(WatchId id, uint32_t events);
  void Unwatch(WatchId id);

  TimerId At(TimePoint deadline, std::function<void()> handler);
  void Cancel(TimerId id);

  // Sets a function that runs after each round of handlers.
  void AfterRound(std::function<void()> hook) { after_round_ = std::move(hook); }

  // Polls a source in each round, until LookAway. The caller keeps it.
  void LookAt(LoopSource& source) { sources_.push_back(&source); }
  void LookAway(LoopSource& source) { std::erase(sources_, &source); }

  // Runs `task` on the control thread; any thread. Returns false, and drops the task, if the loop
  // has ended.
  bool Post(std::function<void()> task);

  // Heartbeat that beats in each round, on the thread of the first round.
  const Heartbeat& heartbeat() const { return heartbeat_; }

  // Runs one round; waits at most `wait` for work.
  void RunOnce(Duration wait);
  // Runs until Stop; tasks posted before it have then run.
  void Run();
  // Ends Run. Any thread.
  void Stop();

  // Returns CLOCK_MONOTONIC.
  static TimePoint Now() { return MonotonicNow(); }

 private:
  struct Watched {
    int fd;
    std::function<void(uint32_t)> handler;
  };

  bool SourceHasWork() const;
  void SetAwake(bool awake);
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
  std::vector<LoopSource*> sources_;
  bool worked_ = false;  // work was done in the last round
  LateYields late_yields_;
  Heartbeat heartbeat_;

  std::mutex mutex_;  // guards the next two fields
  std::vector<std::function<void()>> tasks_;
  bool ended_ = false;
  std::atomic<bool> stop_{false};
};

// Watch that ends with its object.
class ScopedWatch {
 public:
  ScopedWatch(ControlLoop& loop, int fd, uint32_t events, std::function<void(uint32_t)> handler)
      : loop_(loop), id_(loop.Watch(fd, events, std::move(handler))) {}
  ~ScopedWatch() { loop_.Unwatch(id_); }
  void Rearm(uint32_t events) { loop_.Rearm(id_, events); }
  ScopedWatch(const ScopedWatch&) = delete;
  ScopedWatch& operator=(const ScopedWatch&) = delete;

 private:
  ControlLoop& loop_;
  const ControlLoop::WatchId id_;
};

}  // namespace rocegw
