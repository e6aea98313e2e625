// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/worker_thread.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gateway/base/timing/monotonic_clock.h"
#include "gateway/worker/schedule/cycle_clock.h"

namespace rocegw::worker {
namespace {

// Event data: a session's number, or one of these.
constexpr uint64_t kWakeEvent = uint64_t{1} << 40;
constexpr uint64_t kPortEvent = uint64_t{1} << 41;  // or'ed with the port's descriptor
// While there is work, idle sessions are checked every so many rounds.
constexpr uint32_t kWakesEvery = 32;
constexpr int kWakesAtOnce = 32;
constexpr Duration kMaxSleep = Seconds(1);
// Processors stay awake for this long behind the last work.
constexpr Duration kProcessorsAwake = Milliseconds(100);
// Guests that poll return within this time; while they do, the worker's own thread checks at
// intervals of kNap.
constexpr Duration kGuestStays = Microseconds(50);
constexpr Duration kNap = Microseconds(500);
constexpr int kParkedBeatMs = 500;

bool Add(int epoll_fd, int fd, uint64_t data, uint32_t events = EPOLLIN) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = data;
  return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool AddPort(int epoll_fd, int fd) {
  return Add(epoll_fd, fd, kPortEvent | static_cast<uint64_t>(fd));
}

// Clears the socket error of an interface that went down, which would otherwise end every sleep.
void TakeError(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
}

// Waits with nanosecond resolution, because paced flows are due within less than a millisecond.
int Wait(int epoll_fd, epoll_event* events, int most, Duration timeout) {
  const timespec time{timeout.ns / 1000000000, timeout.ns % 1000000000};
  const int count = epoll_pwait2(epoll_fd, events, most, &time, nullptr);
  if (count >= 0 || errno != ENOSYS) return count;
  // Linux before 5.11.
  return epoll_wait(epoll_fd, events, most, static_cast<int>((timeout.ns + 999999) / 1000000));
}

// Reads an eventfd. Only for descriptors that no program has: a read of a shared one may block (see
// Watch).
void DrainOwn(int fd) {
  uint64_t value;
  [[maybe_unused]] const ssize_t n = read(fd, &value, sizeof value);
}

}  // namespace

StatusOr<std::unique_ptr<WorkerThread>> WorkerThread::Start(WorkerOptions options,
                                                            WorkerWaiting waiting, int cpu) {
  auto made = Make(std::move(options), waiting);
  if (!made.ok()) return made;
  Status begun = (*made)->Begin(cpu);
  if (!begun.ok()) return begun;
  return made;
}

StatusOr<std::unique_ptr<WorkerThread>> WorkerThread::Make(WorkerOptions options,
                                                           WorkerWaiting waiting) {
  const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd < 0) {
    return Status(errno, std::string("cannot create an epoll set: ") + std::strerror(errno));
  }
  bool added = Add(epoll_fd, options.link->worker_wake_fd, kWakeEvent);
  for (const port::PacketPort* port : options.ports) {
    if (port->wake_fd() >= 0) added = added && AddPort(epoll_fd, port->wake_fd());
    // A port without a descriptor must be polled.
    if (port->wake_fd() < 0) waiting.policy.may_sleep = false;
  }
  if (!waiting.policy.may_sleep && waiting.policy.keeps_core) {
    close(epoll_fd);
    return Status(EINVAL,
                  "a port that must be polled all the time and real-time workers would stop all "
                  "else on their processors: set waiting.realtime_priority: 0");
  }
  if (!added) {
    const int error = errno;
    close(epoll_fd);
    return Status(error,
                  std::string("cannot watch a worker's descriptors: ") + std::strerror(error));
  }
  std::unique_ptr<WorkerThread> thread(new WorkerThread(std::move(options), waiting, epoll_fd));
  if (waiting.scheduling.keep_processors_awake) {
    if (Status status = WakeLatencyRequest::Check(); !status.ok()) return status;
  }
  return thread;
}

Status WorkerThread::Begin(int cpu) {
  thread_ = std::thread(&WorkerThread::Run, this);
  if (const uint32_t priority = waiting_.scheduling.realtime_priority; priority != 0) {
    if (Status status = MakeRealtime(thread_.native_handle(), priority); !status.ok())
      return status;
  }
  if (cpu < 0) return OkStatus();
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  const int error = pthread_setaffinity_np(thread_.native_handle(), sizeof set, &set);
  if (error == 0) return OkStatus();
  return {error, "cannot pin a worker to CPU " + std::to_string(cpu) +
                     ": set pin_workers to false or allow that CPU"};
}

void WorkerThread::Park() {
  park_.fetch_add(1, std::memory_order_release);
  Rouse();
}

void WorkerThread::Unpark() {
  park_.fetch_add(1, std::memory_order_release);
  Rouse();
}

// Other threads and programs may write the wake descriptor meanwhile; the next iterations find what
// they have done.
void WorkerThread::StayParked(uint32_t number) {
  parked_.store(number, std::memory_order_release);
  while (park_.load(std::memory_order_acquire) == number &&
         !stop_.load(std::memory_order_acquire)) {
    heartbeat_.Beat();
    pollfd wake = {wake_fd_, POLLIN, 0};
    if (poll(&wake, 1, kParkedBeatMs) > 0) DrainOwn(wake_fd_);
  }
}

WorkerThread::WorkerThread(WorkerOptions options, WorkerWaiting waiting, int epoll_fd)
    : waiting_(waiting),
      policy_(waiting.policy),
      epoll_fd_(epoll_fd),
      wake_fd_(options.link->worker_wake_fd),
      counters_(options.counters) {
  options.watch = {&WorkerThread::Watch, this};
  options.start = MonotonicNow();
  options.clock = FindCycleClock();
  options.processor_time = &ThreadProcessorTime;
  worker_ = std::make_unique<Worker>(std::move(options));
}

WorkerThread::~WorkerThread() {
  stop_.store(true, std::memory_order_release);
  Rouse();
  if (thread_.joinable()) thread_.join();
  close(epoll_fd_);
}

void WorkerThread::Rouse() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_fd_, &one, sizeof one);
}

void WorkerThread::Watch(void* context, int fd, SessionId session, bool add) {
  auto* self = static_cast<WorkerThread*>(context);
  // The program has this eventfd too and can clear O_NONBLOCK, which belongs to the open file
  // description. The worker therefore never reads it: each write is one edge, whatever the count
  // is.
  if (add) {
    if (Add(self->epoll_fd_, fd, session.value, EPOLLIN | EPOLLET))
      self->watched_sessions_.insert(session.value);
  } else if (self->watched_sessions_.erase(session.value) != 0) {
    epoll_ctl(self->epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  }
}

// Holder of the run lock: the worker's own thread except while it waits, or a guest for one round.
class WorkerThread::RunLock {
 public:
  explicit RunLock(WorkerThread& worker) : worker_(worker) { Take(); }
  ~RunLock() { Leave(); }
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  void Take() {
    if (!worker_.waiting_.guests) return;
    while (worker_.run_lock_.exchange(true, std::memory_order_acquire)) sched_yield();
  }
  void Leave() {
    if (worker_.waiting_.guests) worker_.run_lock_.store(false, std::memory_order_release);
  }

 private:
  WorkerThread& worker_;
};

void WorkerThread::HandleWakes(const epoll_event* events, int count, TimePoint now) {
  for (int i = 0; i < count; ++i) {
    const uint64_t data = events[i].data.u64;
    if (data == kWakeEvent) {
      DrainOwn(wake_fd_);
    } else if ((data & kPortEvent) != 0) {
      if ((events[i].events & EPOLLERR) != 0) TakeError(static_cast<int>(data & ~kPortEvent));
    } else {
      const SessionId session{static_cast<uint32_t>(data)};
      if (watched_sessions_.contains(session.value)) worker_->OnWake(session, now);
    }
  }
}

void WorkerThread::TakeWakes(TimePoint now) {
  epoll_event events[kWakesAtOnce];
  HandleWakes(events, Wait(epoll_fd_, events, kWakesAtOnce, Duration{}), now);
}

void WorkerThread::EndSleep() {
  if (std::exchange(sleeps_, false)) worker_->FinishSleep();
}

void WorkerThread::Yield(TimePoint now, RunLock& lock) {
  lock.Leave();
  sched_yield();
  lock.Take();
  policy_.OnYield(now, MonotonicNow());
}

// Returns how long the thread may sleep at most.
Duration WorkerThread::SleepLimit(TimePoint now) const {
  const Duration most = wake_latency_.held() ? kProcessorsAwake : kMaxSleep;
  const TimePoint deadline = worker_->NextDeadline();
  return deadline == kNever ? most : std::clamp(deadline - now, Duration{}, most);
}

void WorkerThread::Sleep(TimePoint now, RunLock& lock) {
  if (worker_->NextDeadline() - now < policy_.ShortestSleep(now)) {
    if (!waiting_.policy.keeps_core) sched_yield();
    return;
  }
  if (!worker_->PrepareSleep(now)) return;
  const Duration timeout = SleepLimit(now);
  counters_->sleeps_events.Add();
  sleeps_ = true;
  lock.Leave();
  epoll_event events[kWakesAtOnce];
  const int count = Wait(epoll_fd_, events, kWakesAtOnce, timeout);
  lock.Take();
  HandleWakes(events, count, timeout.ns == 0 ? now : MonotonicNow());
  EndSleep();
  if (waiting_.scheduling.keep_processors_awake) {
    if (count > 0) wake_latency_.Hold();
    if (count == 0 && timeout == kProcessorsAwake) wake_latency_.Release();
  }
}

void WorkerThread::RunGuestRound() {
  const TimePoint now = MonotonicNow();
  guest_at_ns_.store(now.ns, std::memory_order_relaxed);
  if (run_lock_.load(std::memory_order_relaxed) ||
      run_lock_.exchange(true, std::memory_order_acquire))
    return;
  if (sleeps_) {
    EndSleep();
    // The worker's own thread still waits until the deadline of its last sleep, and from now on
    // clients write no eventfd. Wake it, so that it takes over when the guests stay away.
    Rouse();
  }
  worker_->RunOnce(now);
  if (++guest_rounds_ % kWakesEvery == 0) TakeWakes(now);
  run_lock_.store(false, std::memory_order_release);
}

// Waits as long as guests run rounds.
void WorkerThread::StayAway() const {
  while (!stop_.load(std::memory_order_acquire) &&
         MonotonicNow().ns - guest_at_ns_.load(std::memory_order_relaxed) < kGuestStays.ns) {
    const timespec nap{0, kNap.ns};
    nanosleep(&nap, nullptr);
  }
}

void WorkerThread::Run() {
  pthread_setname_np(pthread_self(), "rocegw-worker");
  RequestSlice(waiting_.scheduling.slice);
  heartbeat_.Begin();
  policy_.OnSleep(MonotonicNow());
  for (uint32_t i = 0; !stop_.load(std::memory_order_acquire); ++i) {
    heartbeat_.Beat();
    if (waiting_.guests) StayAway();
    RunLock lock(*this);
    if (const uint32_t number = park_.load(std::memory_order_acquire); number % 2 != 0) {
      StayParked(number);
      policy_.OnSleep(MonotonicNow());
      continue;
    }
    const TimePoint now = MonotonicNow();
    const bool found_work = worker_->RunOnce(now);
    if (i % kWakesEvery == 0) TakeWakes(now);
    switch (policy_.Next(now, found_work)) {
      case WaitStep::kPoll:
        break;
      case WaitStep::kYield:
        Yield(now, lock);
        break;
      case WaitStep::kSleep:
        Sleep(now, lock);
        policy_.OnSleep(MonotonicNow());
        break;
    }
  }
  heartbeat_.End();
}

}  // namespace rocegw::worker
