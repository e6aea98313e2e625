// SPDX-License-Identifier: Apache-2.0
#include "gateway/inprocess/program_thread.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace rocegw::inprocess {

struct ProgramThread::Shared {
  struct Waiting {
    const std::function<void()>* call;
    bool* done;
  };
  std::mutex mutex;  // guards the next two fields
  std::deque<Waiting> waiting;
  std::condition_variable changed;  // a call waits, or is done
  std::thread::id thread;
};

StatusOr<std::shared_ptr<ProgramThread>> ProgramThread::Start() {
  auto shared = std::make_shared<Shared>();
  try {
    std::thread thread([shared] {
      pthread_setname_np(pthread_self(), "rocegw-device");
      std::unique_lock lock(shared->mutex);
      while (true) {
        shared->changed.wait(lock, [&] { return !shared->waiting.empty(); });
        const Shared::Waiting next = shared->waiting.front();
        shared->waiting.pop_front();
        lock.unlock();
        (*next.call)();
        lock.lock();
        *next.done = true;
        shared->changed.notify_all();
      }
    });
    shared->thread = thread.get_id();
    thread.detach();
  } catch (const std::system_error& error) {
    return Status(error.code().value(), std::string("no thread: ") + error.what());
  }
  return std::shared_ptr<ProgramThread>(new ProgramThread(std::move(shared)));
}

void ProgramThread::Run(const std::function<void()>& call) {
  if (std::this_thread::get_id() == shared_->thread) return call();
  bool done = false;
  std::unique_lock lock(shared_->mutex);
  shared_->waiting.push_back({&call, &done});
  shared_->changed.notify_all();
  shared_->changed.wait(lock, [&] { return done; });
}

}  // namespace rocegw::inprocess
