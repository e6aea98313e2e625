// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/descriptors/paced_receiver.h"

#include <poll.h>

#include "gateway/base/timing/monotonic_clock.h"

namespace rocegw::session {
namespace {

constexpr int kLookAgainMs = 5;

}  // namespace

void PacedReceiver::AwaitTurn() {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (costly_.Take(MonotonicNow())) return;
    }
    (void)::poll(nullptr, 0, kLookAgainMs);
  }
}

PassedDescriptor PacedReceiver::Take(int socket, const WantedDescriptor& wanted,
                                     std::vector<UniqueFd>& left) {
  AwaitTurn();
  PassedDescriptor passed = receiver_->Take(socket, wanted, left);
  if (!passed.costly) {
    const std::lock_guard lock(mutex_);
    costly_.GiveBack();
  }
  return passed;
}

bool PacedReceiver::Discard(int socket) {
  AwaitTurn();
  return receiver_->Discard(socket);
}

std::shared_ptr<DescriptorReceiver> PoolReceivers::Of(
    uint64_t pool, const std::shared_ptr<DescriptorReceiver>& receiver) {
  const auto known = by_pool_.find(pool);
  if (known != by_pool_.end()) return known->second;
  // A new pool is rare, and no program can cause one: now is the time to forget those that are
  // gone.
  std::erase_if(by_pool_, [](const auto& entry) { return entry.second.use_count() == 1; });
  return by_pool_.emplace(pool, std::make_shared<PacedReceiver>(receiver)).first->second;
}

}  // namespace rocegw::session
