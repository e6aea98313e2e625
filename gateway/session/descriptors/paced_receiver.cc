// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/descriptors/paced_receiver.h"

#include <chrono>

#include "gateway/base/timing/monotonic_clock.h"

namespace rocegw::session {

void DescriptorTurns::Await() {
  std::unique_lock lock(mutex_);
  const Duration wait = turns_.Reserve(MonotonicNow());
  if (wait.ns > 0)
    not_paced_.wait_for(lock, std::chrono::nanoseconds(wait.ns), [this] { return !paced_; });
}

void DescriptorTurns::Book() {
  const std::lock_guard lock(mutex_);
  (void)turns_.Reserve(MonotonicNow());
}

void DescriptorTurns::GiveBack() {
  const std::lock_guard lock(mutex_);
  turns_.GiveBack();
}

void DescriptorTurns::SetPaced(bool paced) {
  const std::lock_guard lock(mutex_);
  paced_ = paced;
  if (!paced_) not_paced_.notify_all();
}

PassedDescriptor PacedReceiver::Take(int socket, const WantedDescriptor& wanted,
                                     std::vector<UniqueFd>& left) {
  const bool paid = costly_;
  if (paid) turns_->Await();
  PassedDescriptor passed = receiver_->Take(socket, wanted, left);
  costly_ = passed.costly;
  if (costly_ && !paid) turns_->Book();
  if (!costly_ && paid) turns_->GiveBack();
  return passed;
}

bool PacedReceiver::Discard(int socket) {
  turns_->Await();
  return receiver_->Discard(socket);
}

std::shared_ptr<DescriptorReceiver> PoolReceivers::Of(
    uint64_t pool, std::shared_ptr<DescriptorReceiver> receiver) {
  auto known = by_pool_.find(pool);
  if (known == by_pool_.end()) {
    // A new pool is rare, and no program can cause one: now is the time to forget those that are
    // gone.
    std::erase_if(by_pool_, [](const auto& entry) { return entry.second.use_count() == 1; });
    known = by_pool_.emplace(pool, std::make_shared<DescriptorTurns>()).first;
    known->second->SetPaced(paced_);
  }
  return std::make_shared<PacedReceiver>(std::move(receiver), known->second);
}

void PoolReceivers::SetPaced(bool paced) {
  paced_ = paced;
  for (const auto& [pool, turns] : by_pool_) turns->SetPaced(paced);
}

}  // namespace rocegw::session
