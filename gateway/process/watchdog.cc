// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/watchdog.h"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "gateway/base/unique_fd.h"

namespace rocegw::process {
namespace {

constexpr int kDeepestStack = 48;
constexpr int kStackWaits = 50;  // 10 ms each

std::string ReadThreadFile(pid_t thread, const char* name) {
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/" + name;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return {};
  std::array<char, 4096> text;
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  return length <= 0 ? std::string() : std::string(text.data(), static_cast<size_t>(length));
}

std::optional<ThreadSample> Sample(pid_t thread) {
  const std::string stat = ReadThreadFile(thread, "stat");
  // The second field is the name in parentheses and may contain any character.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  ThreadSample sample;
  fields >> sample.state;
  std::string skipped;
  constexpr int kBeforeUserTime = 10;  // fields 4 to 13
  for (int i = 0; i < kBeforeUserTime; ++i) fields >> skipped;
  int64_t user = 0;
  int64_t system = 0;
  fields >> user >> system;
  if (!fields) return std::nullopt;
  sample.cpu = Seconds(1) * (user + system) / ::sysconf(_SC_CLK_TCK);
  return sample;
}

// Request for a thread's call stack, which that thread takes in a signal handler.
struct StackRequest {
  std::atomic<pid_t> thread{0};
  std::atomic<int> depth{0};
  std::array<void*, kDeepestStack> frames;
};
StackRequest stack_request;

int StackSignal() { return SIGRTMIN + 6; }

void TakeStack(int) {
  const int saved = errno;
  if (stack_request.thread.load() == ::gettid()) {
    const int depth = ::backtrace(stack_request.frames.data(), kDeepestStack);
    stack_request.thread.store(0);
    stack_request.depth.store(depth);
  }
  errno = saved;
}

void PrepareStacks() {
  // The first call loads a library, which a handler may not do.
  std::array<void*, 2> ignored;
  (void)::backtrace(ignored.data(), static_cast<int>(ignored.size()));
  struct sigaction action {};
  action.sa_handler = TakeStack;
  action.sa_flags = SA_RESTART;
  ::sigaction(StackSignal(), &action, nullptr);
}

void AddLines(std::vector<std::string>& lines, const std::string& title, const std::string& text) {
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) lines.push_back(title + line);
}

std::string WaitsIn(pid_t thread) {
  std::string channel = ReadThreadFile(thread, "wchan");
  if (channel == "0") channel.clear();
  return channel;
}

}  // namespace

bool StuckJudge::OnSample(uint64_t beats, const ThreadSample& sample, Duration period) {
  const Duration used = sample.cpu - cpu_;
  const bool beaten = !known_ || beats != beats_;
  known_ = true;
  beats_ = beats;
  cpu_ = sample.cpu;
  if (beaten) {
    slept_ = spun_ = {};
    return false;
  }
  const bool sleeps = (sample.state == 'S' || sample.state == 'D') && used.ns == 0;
  slept_ = sleeps ? slept_ + period : Duration{};
  spun_ = spun_ + used;
  return stuck_for() >= stuck_after_;
}

void Watchdog::Watch(std::string name, const Heartbeat& heartbeat) {
  watched_.push_back({std::move(name), &heartbeat, StuckJudge(stuck_after_), false});
}

void Watchdog::Start() {
  PrepareStacks();
  stop_ = false;
  thread_ = std::thread(&Watchdog::Run, this);
  ::pthread_setname_np(thread_.native_handle(), "rocegw-watchdog");
}

void Watchdog::Stop() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  watched_.clear();
}

std::string Watchdog::Stuck() const {
  const std::lock_guard lock(mutex_);
  return stuck_;
}

void Watchdog::Run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::nanoseconds(period_.ns), [this] { return stop_; })) {
    lock.unlock();
    Look();
    lock.lock();
  }
}

void Watchdog::Look() {
  std::string stuck;
  for (Watched& watched : watched_) {
    const pid_t thread = watched.heartbeat->thread();
    const auto sample = thread == 0 ? std::nullopt : Sample(thread);
    if (!sample) continue;
    const bool is_stuck = watched.judge.OnSample(watched.heartbeat->beats(), *sample, period_);
    if (is_stuck && stuck.empty()) {
      stuck = watched.name + " has been stuck for " +
              std::to_string(watched.judge.stuck_for().ns / Seconds(1).ns) + " s";
      if (const std::string where = WaitsIn(thread); !where.empty()) stuck += " in " + where;
    }
    if (is_stuck == std::exchange(watched.stuck, is_stuck)) continue;
    if (!is_stuck) {
      spdlog::warn("watchdog: {} goes on", watched.name);
      continue;
    }
    spdlog::critical("watchdog: {} (thread {}) is stuck", watched.name, thread);
    for (const std::string& line : DescribeThread(thread)) spdlog::critical("watchdog: {}", line);
  }
  const std::lock_guard lock(mutex_);
  stuck_ = std::move(stuck);
}

std::vector<std::string> DescribeThread(pid_t thread) {
  std::vector<std::string> lines;
  if (const auto sample = Sample(thread))
    lines.push_back(std::string("state ") + sample->state + ", waits in '" + WaitsIn(thread) + "'");
  AddLines(lines, "system call and arguments: ", ReadThreadFile(thread, "syscall"));
  AddLines(lines, "kernel: ", ReadThreadFile(thread, "stack"));
  stack_request.depth.store(0);
  stack_request.thread.store(thread);
  if (::syscall(SYS_tgkill, ::getpid(), thread, StackSignal()) != 0) return lines;
  for (int i = 0; i < kStackWaits && stack_request.depth.load() == 0; ++i) {
    const timespec nap{0, 10'000'000};
    ::nanosleep(&nap, nullptr);
  }
  const int depth = stack_request.depth.load();
  stack_request.thread.store(0);
  if (depth == 0) {
    lines.emplace_back("call stack: the thread takes no signal");
    return lines;
  }
  const std::unique_ptr<char*, decltype(&std::free)> names(
      ::backtrace_symbols(stack_request.frames.data(), depth), std::free);
  for (int i = 0; names != nullptr && i < depth; ++i)
    lines.push_back(std::string("call stack: ") + names.get()[i]);
  return lines;
}

}  // namespace rocegw::process
