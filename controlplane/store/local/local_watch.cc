// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/local/local_watch.h"

#include <deque>
#include <utility>

namespace rocegw::store {
namespace {

class LocalWatch : public Watch {
 public:
  LocalWatch(WatchHub& hub, History& history, std::shared_ptr<WatchHub::Waiter> waiter)
      : hub_(hub), history_(history), waiter_(std::move(waiter)) {}

  ~LocalWatch() override {
    const std::lock_guard lock(waiter_->calling);
    waiter_->closed = true;
    hub_.Disarm(*waiter_);
  }

  StatusOr<std::optional<Changes>> TryNext() override {
    if (!ended_.ok()) return ended_;
    while (pending_.empty()) {
      // Armed before reading: a later change wakes the watch, an earlier one is read.
      hub_.Arm(*waiter_);
      const Revision from = waiter_->next;
      auto page = history_.ReadHistory(waiter_->range, from);
      if (!page.ok()) return ended_ = page.status();
      if (page->next == from) return std::optional<Changes>();
      waiter_->GoOn(page->next);
      for (Changes& changes : page->transactions) pending_.push_back(std::move(changes));
    }
    hub_.Disarm(*waiter_);
    std::optional<Changes> first = std::move(pending_.front());
    pending_.pop_front();
    return first;
  }

 private:
  WatchHub& hub_;
  History& history_;
  std::shared_ptr<WatchHub::Waiter> waiter_;
  std::deque<Changes> pending_;
  Status ended_;
};

}  // namespace

std::unique_ptr<Watch> WatchHub::Add(KeyRange range, Revision from, std::function<void()> ready) {
  auto waiter = std::make_shared<Waiter>(std::move(range), from, std::move(ready));
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(waiters_, [](const auto& other) { return other.expired(); });
    waiters_.push_back(waiter);
  }
  return std::make_unique<LocalWatch>(*this, history_, std::move(waiter));
}

void WatchHub::Wake() {
  // A single round serves all changes until it begins.
  if (armed_ > 0 && !wake_posted_.exchange(true)) delivery_.Post([this] { WakeAll(); });
}

void WatchHub::WakeAll() {
  wake_posted_ = false;
  std::vector<std::shared_ptr<Waiter>> waiters;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& weak : waiters_) {
      if (auto waiter = weak.lock()) waiters.push_back(std::move(waiter));
    }
  }
  for (const auto& waiter : waiters) {
    if (!waiter->armed) continue;
    if (const auto quiet = history_.QuietUntil(waiter->range, waiter->next)) {
      waiter->GoOn(*quiet);
      continue;
    }
    const std::lock_guard lock(waiter->calling);
    if (!waiter->closed && Disarm(*waiter) && waiter->ready) waiter->ready();
  }
}

}  // namespace rocegw::store
