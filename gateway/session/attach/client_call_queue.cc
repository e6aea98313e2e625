// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/client_call_queue.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace rocegw::session {
namespace {

// Time after which an idle thread ends.
constexpr std::chrono::seconds kIdle(2);

class ThreadedCallQueue;

// Threads that serve call queues: at most one per call queue with calls.
struct Threads {
  std::mutex mutex;  // guards the fields below and the call queues; never held during a call
  std::condition_variable changed;
  std::deque<std::shared_ptr<ThreadedCallQueue>>
      ready;  // call queues with calls but without a thread
  size_t idle = 0;
  size_t starting = 0;  // created threads that have not yet looked for a call queue
  size_t held = 0;      // calls of all call queues
};

// Never destroyed: blocked threads use it until the process ends.
Threads& TheThreads() {
  static auto* const threads = new Threads;
  return *threads;
}

class ThreadedCallQueue final : public ClientCallQueue,
                                public std::enable_shared_from_this<ThreadedCallQueue> {
 public:
  void Run(std::function<void()> call) override;
  size_t held() const override {
    const std::lock_guard lock(TheThreads().mutex);
    return calls_.size() + (running_ ? 1 : 0);
  }
  // Runs the call queue's calls until none is left. The lock is held at entry and exit.
  void Serve(std::unique_lock<std::mutex>& lock);

 private:
  std::deque<std::function<void()>> calls_;
  bool running_ = false;  // a call is running
  bool served_ = false;   // waits for a thread, or has one
};

void* ServeCallQueues(void*) {
  Threads& threads = TheThreads();
  std::unique_lock lock(threads.mutex);
  --threads.starting;
  while (true) {
    ++threads.idle;
    const bool more = threads.changed.wait_for(lock, kIdle, [&] { return !threads.ready.empty(); });
    --threads.idle;
    if (!more) return nullptr;
    const std::shared_ptr<ThreadedCallQueue> call_queue = std::move(threads.ready.front());
    threads.ready.pop_front();
    call_queue->Serve(lock);
  }
}

bool StartThread() {
  pthread_t thread{};
  if (::pthread_create(&thread, nullptr, ServeCallQueues, nullptr) != 0) return false;
  ::pthread_setname_np(thread, "rocegw-client");
  ::pthread_detach(thread);
  return true;
}

void ThreadedCallQueue::Run(std::function<void()> call) {
  Threads& threads = TheThreads();
  const std::lock_guard lock(threads.mutex);
  calls_.push_back(std::move(call));
  ++threads.held;
  if (std::exchange(served_, true)) return;
  threads.ready.push_back(shared_from_this());
  // If the system cannot create a thread, the call waits for an existing one.
  const bool enough = threads.idle + threads.starting >= threads.ready.size();
  if (!enough && StartThread()) {
    ++threads.starting;
  } else {
    threads.changed.notify_one();
  }
}

void ThreadedCallQueue::Serve(std::unique_lock<std::mutex>& lock) {
  while (!calls_.empty()) {
    std::function<void()> call = std::move(calls_.front());
    calls_.pop_front();
    running_ = true;
    lock.unlock();
    call();
    call = nullptr;  // the call may own the last reference to the call queue
    lock.lock();
    running_ = false;
    --TheThreads().held;
  }
  served_ = false;
}

}  // namespace

std::shared_ptr<ClientCallQueue> ClientCallQueue::Make() {
  return std::make_shared<ThreadedCallQueue>();
}

size_t ClientCallQueue::HeldByAll() {
  const std::lock_guard lock(TheThreads().mutex);
  return TheThreads().held;
}

void ClientCallQueue::Close(UniqueFd descriptor) {
  // A function must be copyable, a descriptor is not.
  Run([owned = std::make_shared<UniqueFd>(std::move(descriptor))] { owned->Reset(); });
}

ReturnedCalls::ReturnedCalls() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

uint64_t ReturnedCalls::Expect(std::function<void()> done) {
  expected_.emplace(next_, std::move(done));
  return next_++;
}

void ReturnedCalls::Report(uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    returned_.push_back(number);
  }
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void ReturnedCalls::TakeAll() {
  uint64_t value = 0;
  (void)!::read(wake_.get(), &value, sizeof value);
  std::vector<uint64_t> returned;
  {
    const std::lock_guard lock(mutex_);
    returned.swap(returned_);
  }
  for (const uint64_t number : returned) {
    auto node = expected_.extract(number);
    if (!node.empty()) node.mapped()();
  }
}

}  // namespace rocegw::session
