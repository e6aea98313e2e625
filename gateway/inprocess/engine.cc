// SPDX-License-Identifier: Apache-2.0
#include "gateway/inprocess/engine.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "gateway/base/descriptor_message.h"
#include "gateway/inprocess/own_descriptors.h"
#include "gateway/inprocess/program_thread.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::inprocess {
namespace {

constexpr Duration kLoopRound = Seconds(60);
constexpr Duration kSessionsEndWithin = Seconds(2);
// Time for disconnects: a peer answers within a round trip; one that does not finds out by its
// retries.
constexpr Duration kFarewell = Milliseconds(200);
// Programs expect their descriptors below this number (select, dup2 to small numbers).
constexpr int kLowestOwnDescriptor = 100;
// In the place of a library's name, for the message about it.
constexpr char kTooLate[] = "library of a GPU that was loaded after the first use of verbs";

// Scope with all signals blocked, so that handlers run on the program's threads. The C library's
// sigset leaves out the signals with which it sets user ids on all threads of a process.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

UniqueFd MovedAside(int fd) {
  UniqueFd original(fd);
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, kLowestOwnDescriptor);
  if (moved >= 0) return UniqueFd(moved);
  // The descriptor limit is lower; only the first three numbers must stay free.
  const int low = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  return low >= 0 ? UniqueFd(low) : std::move(original);
}

Status NoDescriptors(int error) {
  return {error, std::string("no socket pair: ") + std::strerror(error)};
}

}  // namespace

datapath::Config Engine::ConfigFor(const Wishes& wishes) {
  datapath::Config config;
  config.workers = 1;
  config.guest_rounds = wishes.run_in_poll;
  if (wishes.placement) config.memory_placement = MemoryPlacement::kEnabled;
  config.ports[0].only_address = wishes.address;
  // Remapping saves a system call that looks up pages, which is not needed here; and its hooks
  // would make our threads wait for threads that wait for us.
  config.default_pool.remap_allowed = false;
  return config;
}

Engine::Engine(datapath::Config config, session::Log log, bool keep_stderr)
    : config_(std::move(config)), log_(std::move(log)), keep_stderr_(keep_stderr) {}

Engine::~Engine() {
  if (thread_.joinable()) Stop(kSessionsEndWithin + kFarewell);
}

Status Engine::Start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return NoDescriptors(errno);
  orders_ = MovedAside(ends[0]);
  UniqueFd engine_end = MovedAside(ends[1]);
  struct stat about {};
  if (::fstat(orders_.get(), &about) != 0) return NoDescriptors(errno);
  orders_device_ = about.st_dev;
  orders_inode_ = about.st_ino;
  process_ = ::getpid();
  try {
    const AllSignalsBlocked blocked;
    if (device_memory::IsLoaded({})) {
      auto started = ProgramThread::Start();
      if (!started.ok()) return started.status();
      program_thread_ = *started;
    }
    thread_ = std::thread(&Engine::Run, this, engine_end.get());
    if (config_.guest_rounds)
      (void)engine_end.Release();  // same table, so the descriptor is the engine's
  } catch (const std::system_error& error) {
    return {error.code().value(), std::string("no thread: ") + error.what()};
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stage_ != Stage::kStarting; });
  if (stage_ == Stage::kRunning) return OkStatus();
  lock.unlock();
  thread_.join();
  return status_;
}

void Engine::SetStage(Stage stage, Status status) {
  const std::lock_guard lock(mutex_);
  stage_ = stage;
  status_ = std::move(status);
  changed_.notify_all();
}

// Runs the engine's thread. Its end of the order socket stays open in the program's table until
// Start returns, and in its own table until the thread ends.
void Engine::Run(int orders) {
  pthread_setname_np(pthread_self(), "rocegw-control");
  if (!config_.guest_rounds) {
    if (Status own = LeaveDescriptorsOfProgram(orders, keep_stderr_); !own.ok())
      return SetStage(Stage::kFailed, own);
  }
  Serve(orders);
}

void Engine::Serve(int orders) {
  ControlLoop loop;
  if (Status opened = loop.Open(); !opened.ok()) return SetStage(Stage::kFailed, opened);
  datapath::DataPath path(config_, loop, {log_, {}, {}});
  Status started = path.StartPorts();
  if (started.ok()) started = path.StartWorkers();
  if (!started.ok()) {
    path.StopWorkers();
    return SetStage(Stage::kFailed, started);
  }
  session::Options options;
  options.version = ROCEGW_VERSION;
  options.memory_way = session::MemoryWay::kOwn;
  if (program_thread_ != nullptr) {
    options.call_driver = [thread = program_thread_](const std::function<void()>& call) {
      thread->Run(call);
    };
  } else {
    // No thread here has the program's descriptors any more.
    options.drivers = {kTooLate, kTooLate};
  }
  path.StartSessions(std::move(options));

  bool stop = false;
  const auto watch = loop.Watch(orders, EPOLLIN, [&](uint32_t) {
    Order order{};
    UniqueFd descriptor;
    // A program that has closed its end sends no more orders.
    if (!Receive(orders, order, descriptor) || order == Order::kStop) {
      stop = true;
    } else if (descriptor.valid()) {
      path.sessions()->Attach(std::move(descriptor), session::kDefaultPool, "in-process");
    }
  });
  if (config_.guest_rounds) open_to_guests_.store(&path);
  SetStage(Stage::kRunning);
  while (!stop) loop.RunOnce(kLoopRound);
  loop.Unwatch(watch);
  if (!path.StopSessions(kSessionsEndWithin, kFarewell)) {
    // Workers and queues are still in use: this thread must not destroy anything.
    for (;;) ::pause();
  }
  TurnGuestsAway();
  path.StopWorkers();
  path.StopPorts();
  SetStage(Stage::kStopped);
}

void Engine::Progress() {
  // A thread that is cancelled in one of the system calls would take the worker with it.
  int cancelled_at = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelled_at);
  const int saved = errno;
  guests_.fetch_add(1);
  if (datapath::DataPath* const path = open_to_guests_.load()) path->RunGuestRound();
  guests_.fetch_sub(1);
  errno = saved;
  pthread_setcancelstate(cancelled_at, nullptr);
}

void Engine::TurnGuestsAway() {
  open_to_guests_.store(nullptr);
  while (guests_.load() != 0) std::this_thread::yield();
}

StatusOr<UniqueFd> Engine::Attach() {
  if (::getpid() != process_) {
    return Status(
        EOWNERDEAD,
        "this process is a child of the one that has the gateway; start RDMA in the child "
        "alone, or use a rocegwd");
  }
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return NoDescriptors(errno);
  UniqueFd program_end(ends[0]);
  UniqueFd engine_end(ends[1]);
  (void)::fcntl(engine_end.get(), F_SETFL, O_NONBLOCK);
  if (!Send(Order::kAttach, engine_end.get())) {
    return Status(EPIPE,
                  "the program has closed descriptors that it did not open, those of the gateway "
                  "inside of it among them");
  }
  return program_end;
}

bool Engine::Stop(Duration within) {
  if (::getpid() != process_) return false;  // a forked child has no such thread
  if (!Send(Order::kStop, -1)) {
    thread_.detach();
    return false;
  }
  std::unique_lock lock(mutex_);
  const bool ended = changed_.wait_for(lock, std::chrono::nanoseconds(within.ns),
                                       [this] { return stage_ == Stage::kStopped; });
  lock.unlock();
  ended ? thread_.join() : thread_.detach();
  return ended;
}

bool Engine::Send(Order order, int descriptor) const {
  struct stat about {};
  if (::fstat(orders_.get(), &about) != 0 || about.st_dev != orders_device_ ||
      about.st_ino != orders_inode_) {
    return false;
  }
  const std::span bytes(reinterpret_cast<const uint8_t*>(&order), sizeof order);
  return SendDescriptors(orders_.get(), bytes, std::span(&descriptor, descriptor >= 0 ? 1 : 0),
                         0) == sizeof order;
}

bool Engine::Receive(int orders, Order& order, UniqueFd& descriptor) {
  const std::span bytes(reinterpret_cast<uint8_t*>(&order), sizeof order);
  DescriptorMessage message = ReceiveDescriptors(orders, bytes, MSG_DONTWAIT);
  if (message.length != sizeof order) return false;
  if (!message.fds.empty()) descriptor = std::move(message.fds.front());
  return true;
}

}  // namespace rocegw::inprocess
