// SPDX-License-Identifier: Apache-2.0
#include "gateway/loop/control_loop.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

namespace rocegw {
namespace {

constexpr uint64_t kWakeId = 0;

// Time for which the thread stays awake after work: the next request of a program or answer of a
// peer often follows at once, and halting and waking a CPU takes longer than that work. The thread
// does not linger if other threads need the CPU.
constexpr Duration kLinger = Microseconds(40);

// Recycled timer nodes: timers come and go often, few at once.
constexpr size_t kKeptTimers = 16;

}  // namespace

ControlLoop::ControlLoop() {
  kept_timers_.SetWanted(kKeptTimers);
  kept_deadlines_.SetWanted(kKeptTimers);
  (void)kept_timers_.Refill(timers_, kKeptTimers);
  (void)kept_deadlines_.Refill(timer_deadlines_, kKeptTimers);
  due_.reserve(kKeptTimers);
}

Status ControlLoop::Open() {
  epoll_.Reset(::epoll_create1(EPOLL_CLOEXEC));
  wake_.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeId;
  if (!epoll_.valid() || !wake_.valid() ||
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) {
    return {errno, std::string("control loop: ") + std::strerror(errno)};
  }
  return OkStatus();
}

ControlLoop::WatchId ControlLoop::Watch(int fd, uint32_t events,
                                        std::function<void(uint32_t)> handler) {
  const WatchId id = next_id_++;
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return 0;
  watches_.emplace(id, std::make_shared<Watched>(Watched{fd, std::move(handler)}));
  return id;
}

void ControlLoop::Rearm(WatchId id, uint32_t events) {
  const auto it = watches_.find(id);
  if (it == watches_.end()) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, it->second->fd, &event);
}

void ControlLoop::Unwatch(WatchId id) {
  const auto it = watches_.find(id);
  if (it == watches_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second->fd, nullptr);
  watches_.erase(it);
}

ControlLoop::TimerId ControlLoop::At(TimePoint deadline, std::function<void()> handler) {
  const TimerId id = next_id_++;
  kept_timers_.Insert(timers_, deadline, std::make_pair(id, std::move(handler)));
  kept_deadlines_.Insert(timer_deadlines_, id, deadline);
  return id;
}

void ControlLoop::Cancel(TimerId id) {
  const auto found = timer_deadlines_.find(id);
  if (found == timer_deadlines_.end()) return;
  auto [it, end] = timers_.equal_range(found->second);
  while (it != end && it->second.first != id) ++it;
  if (it != end) kept_timers_.Erase(timers_, it);
  kept_deadlines_.Erase(timer_deadlines_, found);
}

bool ControlLoop::Post(std::function<void()> task) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ended_) return false;
    tasks_.push_back(std::move(task));
  }
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
  return true;
}

bool ControlLoop::RunTasks() {
  std::vector<std::function<void()>> tasks;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks.swap(tasks_);
  }
  for (auto& task : tasks) task();
  return !tasks.empty();
}

void ControlLoop::RunTimers() {
  const TimePoint now = Now();
  // Timers that a handler adds with a past deadline wait for the next round, so that a round ends.
  due_.clear();
  for (auto it = timers_.begin(); it != timers_.end() && it->first <= now; ++it)
    due_.push_back(it->second.first);
  for (const TimerId id : due_) {
    const auto found = timer_deadlines_.find(id);
    if (found == timer_deadlines_.end()) continue;  // cancelled meanwhile
    auto it = timers_.lower_bound(found->second);
    while (it->second.first != id) ++it;
    const std::function<void()> handler = std::move(it->second.second);
    kept_timers_.Erase(timers_, it);
    kept_deadlines_.Erase(timer_deadlines_, found);
    handler();
  }
}

int ControlLoop::WaitMilliseconds(Duration wait) const {
  if (!timers_.empty()) wait = std::min(wait, timers_.begin()->first - Now());
  if (wait.ns <= 0) return 0;
  const int64_t ms = wait.ns / 1000000 + (wait.ns % 1000000 != 0 ? 1 : 0);
  return static_cast<int>(std::min<int64_t>(ms, std::numeric_limits<int>::max()));
}

bool ControlLoop::SourceHasWork() const {
  return std::ranges::any_of(sources_, [](const LoopSource* source) { return source->HasWork(); });
}

void ControlLoop::SetAwake(bool awake) {
  for (LoopSource* const source : sources_) source->SetAwake(awake);
}

int ControlLoop::Linger(epoll_event* events, int most) {
  const TimePoint begin = Now();
  if (late_yields_.crowded(begin)) return 0;
  for (TimePoint at = begin; at - begin < kLinger;) {
    const int count = ::epoll_wait(epoll_.get(), events, most, 0);
    if (count != 0 || SourceHasWork()) return count;
    ::sched_yield();
    const TimePoint back = Now();
    late_yields_.OnYield(at, back);
    at = back;
  }
  return 0;
}

int ControlLoop::Await(epoll_event* events, int most, Duration wait) {
  if (worked_ && WaitMilliseconds(wait) != 0) {
    const int count = Linger(events, most);
    if (count != 0 || SourceHasWork()) return count;
  }
  SetAwake(false);
  const int count =
      ::epoll_wait(epoll_.get(), events, most, SourceHasWork() ? 0 : WaitMilliseconds(wait));
  SetAwake(true);
  return count;
}

void ControlLoop::RunOnce(Duration wait) {
  if (heartbeat_.thread() == 0) heartbeat_.Begin();
  heartbeat_.Beat();
  std::array<epoll_event, 64> events;
  const int count = Await(events.data(), events.size(), wait);
  worked_ = count > 0;
  for (int i = 0; i < count; ++i) {
    const uint64_t id = events[i].data.u64;  // a copy: the record is packed
    if (id == kWakeId) {
      uint64_t value = 0;
      (void)!::read(wake_.get(), &value, sizeof value);
      continue;
    }
    // An earlier handler of this round may have removed the watch; its number is never reused.
    const auto it = watches_.find(id);
    if (it == watches_.end()) continue;
    const std::shared_ptr<Watched> watched = it->second;
    watched->handler(events[i].events);
  }
  for (LoopSource* const source : sources_) {
    if (!source->HasWork()) continue;
    source->Work();
    worked_ = true;
  }
  worked_ = RunTasks() || worked_;
  RunTimers();
  if (after_round_) after_round_();
}

void ControlLoop::Run() {
  while (!stop_.load(std::memory_order_acquire)) RunOnce(Seconds(3600));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  RunTasks();
}

void ControlLoop::Stop() {
  stop_.store(true, std::memory_order_release);
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

}  // namespace rocegw
