// SPDX-License-Identifier: Apache-2.0
// Consumer end of an SQ or RQ ring. It keeps private indices and accepts the client's producer
// index only if it lies within the ring. Used by one worker. Order of indices: released <= fetched
// <= producer.
//
// The private part (RingPlace) is separate from the shared indices, because the shared indices of
// both rings of a queue pair lie in the same two blocks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gateway/shm/untrusted.h"

namespace rocegw::shm {

struct RingPlace {
  const uint8_t* slots = nullptr;
  uint32_t known_producer = 0;
  uint32_t fetched = 0;
  uint32_t released = 0;
  uint16_t entries = 0;
  uint16_t stride = 0;  // bytes of a slot

  RingPlace() = default;
  // slots are client memory. At most 2^15 entries. All indices start at `first`.
  RingPlace(const uint8_t* first_slot, uint32_t count, uint32_t slot_bytes, uint32_t first = 0)
      : slots(first_slot),
        known_producer(first),
        fetched(first),
        released(first),
        entries(static_cast<uint16_t>(count)),
        stride(static_cast<uint16_t>(slot_bytes)) {}

  // Returns the slot that is fetched next.
  const uint8_t* Next() const {
    return slots + static_cast<size_t>(fetched & (entries - 1u)) * stride;
  }

  // Writes or reads the indices (hand_over::StateStream).
  template <typename Stream>
  void HandOver(Stream& state) {
    state(known_producer, fetched, released);
    const uint32_t held = fetched - released;
    state.Require(held <= entries && known_producer - fetched <= entries - held,
                  "ring indices are impossible");
  }
};

enum class RingLook : uint8_t { kEmpty, kReady, kFault };

// Template parameter Place: RingPlace, or a reference to one.
template <typename Place>
class WorkQueueOn {
 public:
  // producer is client memory; released is the gateway's memory, which the client reads.
  WorkQueueOn(const uint32_t* producer, uint32_t* released, Place place)
      : producer_(producer), released_out_(released), place_(place) {}

  using Look = RingLook;

  // Returns kReady if there is a slot to fetch; kFault: the client's index is impossible.
  Look Check() {
    if (place_.fetched != place_.known_producer) return Look::kReady;
    if (place_.entries == 0) return Look::kEmpty;
    // Sequentially consistent, like the exchange that took the doorbell: a client that found the
    // bit still set, and did not set it, stored its index before the exchange.
    const uint32_t producer = LoadOrdered(producer_);
    if (producer == place_.fetched) return Look::kEmpty;
    // An index beyond the ring, or behind `fetched`, would never let the loop end.
    if (producer - place_.fetched > entries() - (place_.fetched - place_.released))
      return Look::kFault;
    place_.known_producer = producer;
    return Look::kReady;
  }

  // Returns the number of slots to fetch according to the client, at most entries().
  uint32_t Posted() const {
    return place_.entries == 0 ? 0 : std::min(LoadOrdered(producer_) - place_.fetched, entries());
  }

  // Returns the slot that Check found; Fetch takes it. The client may change it: copy it first.
  const uint8_t* Slot() const { return place_.Next(); }
  // Takes the slot and returns its free-running index.
  uint32_t Fetch() { return place_.fetched++; }

  // Lets the client reuse the slots below `index`.
  void Release(uint32_t index) {
    place_.released = index;
    StoreRelease(released_out_, index);
  }

  // Skips everything posted (QP reset). Returns false if the client's index is impossible; fetched
  // slots are released then as well.
  bool Discard() {
    const uint32_t producer = place_.entries == 0 ? place_.fetched : LoadAcquire(producer_);
    const bool possible =
        producer - place_.fetched <= entries() - (place_.fetched - place_.released);
    if (possible) place_.fetched = producer;
    place_.known_producer = place_.fetched;
    Release(place_.fetched);
    return possible;
  }

  // Returns the number of posted, unfetched slots; 0 if the client's index is impossible.
  uint32_t Waiting() const {
    const uint32_t count = place_.entries == 0 ? 0 : LoadOrdered(producer_) - place_.fetched;
    return count > place_.entries ? 0 : count;
  }

  uint32_t fetched() const { return place_.fetched; }
  uint32_t released() const { return place_.released; }
  uint32_t entries() const { return place_.entries; }
  template <typename Stream>
  void HandOver(Stream& state) {
    place_.HandOver(state);
  }

 private:
  const uint32_t* producer_;
  uint32_t* released_out_;
  Place place_;
};

class WorkQueue : public WorkQueueOn<RingPlace> {
 public:
  WorkQueue() : WorkQueueOn(nullptr, nullptr, RingPlace()) {}
  WorkQueue(const uint32_t* producer, uint32_t* released, const uint8_t* slots, uint32_t entries,
            uint32_t stride, uint32_t first = 0)
      : WorkQueueOn(producer, released, RingPlace(slots, entries, stride, first)) {}
};

}  // namespace rocegw::shm
