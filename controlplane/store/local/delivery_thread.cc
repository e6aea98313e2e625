// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/local/delivery_thread.h"

#include <utility>

namespace rocegw::store {

DeliveryThread::DeliveryThread() : thread_([this] { Run(); }) {}

DeliveryThread::~DeliveryThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    posted_.notify_one();
  }
  thread_.join();
}

void DeliveryThread::Post(std::function<void()> work) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    first = work_.size() == 1;
  }
  if (first) posted_.notify_one();
}

void DeliveryThread::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    posted_.wait(lock, [this] { return stopping_ || !work_.empty(); });
    if (work_.empty()) return;
    auto work = std::exchange(work_, {});
    lock.unlock();
    for (std::function<void()>& piece : work) {
      piece();
      piece = nullptr;
    }
    lock.lock();
  }
}

}  // namespace rocegw::store
