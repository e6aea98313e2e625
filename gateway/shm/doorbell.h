// SPDX-License-Identifier: Apache-2.0
// The worker's end of a doorbell page: takes set bits, summary first. A producer that dies between
// its two stores leaves a leaf bit without its summary bit; TakeAll, run now and then, finds those.
// One worker takes, any client thread sets.
//
// A worker that takes each bell the moment it rings moves the same cache lines between two cores
// for every single request. DoorbellPace makes it wait until some have gathered.
#pragma once

#include <bit>
#include <cstdint>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/time.h"

namespace rocegw::shm {

// When bells of one session may be taken again. A request that comes alone waits for nothing: the
// pause begins with the last bell that was taken.
class DoorbellPace {
 public:
  bool MayTake(TimePoint now) const { return now >= next_; }
  void Took(TimePoint now) { next_ = now + kPause; }

 private:
  // Some tens of requests at the rate of one posting thread.
  static constexpr Duration kPause = Microseconds(1);
  TimePoint next_;
};

// Calls on_bit(index 0..4095) for every bit taken; returns how many.
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

// Whether TakeDoorbells would find any.
inline bool HasDoorbells(const rocegw_doorbell_page* page) {
  return __atomic_load_n(&page->summary, __ATOMIC_RELAXED) != 0;
}

// At most so many leaves at once: a program that rings everything it has makes nobody wait for
// thousands of bells. The other leaves keep their bits and come next.
inline constexpr int kLeavesAtOnce = 8;

// `turn` moves on from call to call, so that the first leaf is another one each time.
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

// Looks at every leaf, whatever the summary says.
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
