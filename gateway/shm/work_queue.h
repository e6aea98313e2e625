// SPDX-License-Identifier: Apache-2.0
// The daemon's consumer end of an SQ or RQ ring. Keeps private indices; believes the client's
// producer index only when it is within the ring. One worker uses it. Order of indices: released <=
// fetched <= producer.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gateway/shm/untrusted.h"

namespace rocegw::shm {

class WorkQueue {
 public:
  WorkQueue() = default;
  // producer and slots are client memory; released is ours and read by the client. At most 2^15
  // entries. All indices begin at `first`.
  WorkQueue(const uint32_t* producer, uint32_t* released, const uint8_t* slots, uint32_t entries,
            uint32_t stride, uint32_t first = 0)
      : producer_(producer),
        released_out_(released),
        slots_(slots),
        known_producer_(first),
        fetched_(first),
        released_(first),
        entries_(static_cast<uint16_t>(entries)),
        stride_(static_cast<uint16_t>(stride)) {}

  enum class Look : uint8_t { kEmpty, kReady, kFault };

  // Is there a slot to fetch? kFault: the client's index is impossible.
  Look Check() {
    if (fetched_ != known_producer_) return Look::kReady;
    if (entries_ == 0) return Look::kEmpty;
    // Sequentially consistent, as the exchange that took the doorbell: whoever found the bit still
    // set and left it alone has stored its index before.
    const uint32_t producer = LoadOrdered(producer_);
    if (producer == fetched_) return Look::kEmpty;
    // Neither beyond the ring nor back over what was fetched: the walk would not end.
    if (producer - fetched_ > entries() - (fetched_ - released_)) return Look::kFault;
    known_producer_ = producer;
    return Look::kReady;
  }

  // Slots to fetch, as the client says.
  uint32_t Posted() const {
    return entries_ == 0 ? 0 : std::min(LoadOrdered(producer_) - fetched_, entries());
  }

  // The slot that Check found; take it with Fetch. Copy it out, its content may change.
  const uint8_t* Slot() const {
    return slots_ + static_cast<size_t>(fetched_ & (entries() - 1)) * stride_;
  }
  // Returns the index of the slot, free running.
  uint32_t Fetch() { return fetched_++; }

  // Slots below `index` may be reused by the client.
  void Release(uint32_t index) {
    released_ = index;
    StoreRelease(released_out_, index);
  }

  // Skips everything that is posted (QP reset). False when the client's index is impossible; what
  // was fetched is released then as well.
  bool Discard() {
    const uint32_t producer = entries_ == 0 ? fetched_ : LoadAcquire(producer_);
    const bool possible = producer - fetched_ <= entries() - (fetched_ - released_);
    if (possible) fetched_ = producer;
    known_producer_ = fetched_;
    Release(fetched_);
    return possible;
  }

  // Slots that are posted and not fetched, as far as the client's index is possible.
  uint32_t Waiting() const {
    const uint32_t count = entries_ == 0 ? 0 : LoadOrdered(producer_) - fetched_;
    return count > entries_ ? 0 : count;
  }

  uint32_t fetched() const { return fetched_; }
  uint32_t released() const { return released_; }
  uint32_t entries() const { return entries_; }

 private:
  const uint32_t* producer_ = nullptr;
  uint32_t* released_out_ = nullptr;
  const uint8_t* slots_ = nullptr;
  uint32_t known_producer_ = 0;
  uint32_t fetched_ = 0;
  uint32_t released_ = 0;
  uint16_t entries_ = 0;
  uint16_t stride_ = 0;  // bytes of a slot
};

}  // namespace rocegw::shm
