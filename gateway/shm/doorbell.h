// SPDX-License-Identifier: Apache-2.0
// Consumer end of a doorbell page: takes set bits, summary first. A producer that dies between its
// two stores leaves a leaf bit without its summary bit; TakeAllDoorbells, called occasionally,
// finds those. One worker takes bits, any client thread sets them.
//
// A worker that takes each doorbell at once moves the same cache lines between two cores for every
// request. DoorbellPace therefore makes it wait until some have gathered.
#pragma once

#include <bit>
#include <cstdint>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/time.h"

namespace rocegw::shm {

// Pace at which the doorbells of one session are taken. A single request never waits: the pause
// starts when a doorbell is taken.
class DoorbellPace {
 public:
  bool MayTake(TimePoint now) const { return now >= next_; }
  void Took(TimePoint now) { next_ = now + kPause; }

 private:
  // Time in which one posting thread makes some tens of requests.
  static constexpr Duration kPause = Microseconds(1);
  TimePoint next_;
};

// Calls on_bit(index 0..4095) for every bit taken. Returns the number of bits.
template <typename F>
uint32_t TakeDoorbellLeaves(rocegw_doorbell_page* page, uint64_t leaves, F&& on_bit) {
  uint32_t taken = 0;
  while (leaves != 0) {
    const int leaf = std::countr_zero(leaves);
    leaves &= leaves - 1;
    uint64_t bits = __atomic_exchange_n(&page->leaf[leaf], 0, __ATOMIC_SEQ_CST);
    while (bits != 0) {
      const int bit = std::countr_zero(bits);
      bits &= bits - 1;
      on_bit(static_cast<uint32_t>(leaf * 64 + bit));
      ++taken;
    }
  }
  return taken;
}

// Returns true if TakeDoorbells would find any.
inline bool HasDoorbells(const rocegw_doorbell_page* page) {
  return __atomic_load_n(&page->summary, __ATOMIC_RELAXED) != 0;
}

// Limit of leaves per call, so that a program that rings thousands of doorbells delays no other.
// The other leaves keep their bits for later calls.
inline constexpr int kLeavesAtOnce = 8;

// `turn` changes from call to call, so that each call starts at another leaf.
template <typename F>
uint32_t TakeDoorbells(rocegw_doorbell_page* page, uint32_t turn, F&& on_bit) {
  if (!HasDoorbells(page)) return 0;
  uint64_t leaves = __atomic_exchange_n(&page->summary, 0, __ATOMIC_SEQ_CST);
  if (std::popcount(leaves) > kLeavesAtOnce) {
    const auto first = static_cast<int>(turn % 8) * 8;
    uint64_t later = std::rotr(leaves, first);
    for (int i = 0; i < kLeavesAtOnce; ++i) later &= later - 1;
    later = std::rotl(later, first);
    leaves ^= later;
    __atomic_fetch_or(&page->summary, later, __ATOMIC_SEQ_CST);
  }
  return TakeDoorbellLeaves(page, leaves, on_bit);
}

// Takes the bits of every leaf, whatever the summary says.
template <typename F>
uint32_t TakeAllDoorbells(rocegw_doorbell_page* page, F&& on_bit) {
  __atomic_exchange_n(&page->summary, 0, __ATOMIC_SEQ_CST);
  uint64_t leaves = 0;
  for (int i = 0; i < 64; ++i) {
    if (__atomic_load_n(&page->leaf[i], __ATOMIC_RELAXED) != 0) leaves |= uint64_t{1} << i;
  }
  return TakeDoorbellLeaves(page, leaves, on_bit);
}

}  // namespace rocegw::shm
