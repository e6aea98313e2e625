// SPDX-License-Identifier: Apache-2.0
// Producer end of a CQ ring. A sequence number makes an entry valid, so the client reads one cache
// line per completion. One worker writes it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/shm/untrusted.h"

namespace rocegw::shm {

class CompletionRing {
 public:
  CompletionRing() = default;
  // ring is the gateway's memory; consumer is client memory. Both indices start at `first`.
  CompletionRing(rocegw_cqe* ring, uint32_t entries, const uint32_t* consumer, uint32_t first = 0)
      : ring_(ring), entries_(entries), consumer_(consumer), produced_(first), consumed_(first) {}

  // Writes a completion. Returns false if the ring is full: the queue is overrun.
  bool Push(const rocegw_cqe& cqe) {
    if (produced_ - consumed_ >= entries_) {
      const uint32_t consumer = LoadAcquire(consumer_);
      // An impossible index counts as no progress.
      if (produced_ - consumer <= entries_) consumed_ = consumer;
      if (produced_ - consumed_ >= entries_) return false;
    }
    rocegw_cqe& slot = ring_[produced_ & (entries_ - 1)];
    std::memcpy(&slot, &cqe, offsetof(rocegw_cqe, sequence));
    StoreRelease(&slot.sequence, ++produced_);
    return true;
  }

  // Moves to another ring with the completions that the client has not consumed. Returns false
  // without a change if there are more than `most`, which is at most `entries`.
  bool MoveTo(rocegw_cqe* ring, uint32_t entries, uint32_t most) {
    const uint32_t consumer = LoadAcquire(consumer_);
    if (produced_ - consumer <= entries_) consumed_ = consumer;
    if (produced_ - consumed_ > most) return false;
    for (uint32_t index = consumed_; index != produced_ && ring != ring_; ++index)
      ring[index & (entries - 1)] = ring_[index & (entries_ - 1)];
    ring_ = ring;
    entries_ = entries;
    return true;
  }

  // Prefetches the slot of the next completion for writing.
  void Prefetch() const { __builtin_prefetch(&ring_[produced_ & (entries_ - 1)], 1); }

  uint32_t produced() const { return produced_; }
  // Writes or reads the indices (hand_over::StateStream).
  template <typename Stream>
  void HandOver(Stream& state) {
    state(produced_, consumed_);
    state.Require(produced_ - consumed_ <= entries_, "completion indices are impossible");
  }

 private:
  rocegw_cqe* ring_ = nullptr;
  uint32_t entries_ = 0;
  const uint32_t* consumer_ = nullptr;
  uint32_t produced_ = 0;
  uint32_t consumed_ = 0;
};

}  // namespace rocegw::shm
