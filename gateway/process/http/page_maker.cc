// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/http/page_maker.h"

#include <utility>

namespace rocegw::process {

PageMaker::PageMaker(std::function<Page()> make, std::function<void()> made)
    : make_(std::move(make)), made_(std::move(made)), thread_(&PageMaker::Run, this) {}

PageMaker::~PageMaker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

uint64_t PageMaker::Order() {
  const std::lock_guard lock(mutex_);
  ordered_ = begun_ + 1;
  changed_.notify_one();
  return ordered_;
}

std::shared_ptr<const Page> PageMaker::Find(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return done_ >= number ? page_ : nullptr;
}

void PageMaker::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || ordered_ > begun_; });
    if (stop_) return;
    ++begun_;
    lock.unlock();
    auto page = std::make_shared<const Page>(make_());
    lock.lock();
    page_ = std::move(page);
    done_ = begun_;
    lock.unlock();
    made_();
    lock.lock();
  }
}

}  // namespace rocegw::process
