// SPDX-License-Identifier: Apache-2.0
// The worker's end of a doorbell page: takes set bits, summary first. A producer that dies between
// its two stores leaves a leaf bit without its summary bit; TakeAll, run now and then, finds those.
// One worker takes, any client thread sets.
#pragma once

#include <bit>
#include <cstdint>

#include "gateway/abi/rocegw_abi.h"

namespace rocegw::shm {

// Calls on_bit(index 0..4095) for every bit taken; returns how many.
template <typename F>
uint32_t TakeDoorbellLeaves(rocegw_doorbell_page* page, uint64_t leaves, F&& on_bit) {
  uint32_t taken = 0;
  while (leaves != 0) {
    const int leaf = std::countr_zero(leaves);
    leaves &= leaves - 1;
    uint64_t bits = __atomic_exchange_n(&page->leaf[leaf], 0, __ATOMIC_ACQ_REL);
    while (bits != 0) {
      const int bit = std::countr_zero(bits);
      bits &= bits - 1;
      on_bit(static_cast<uint32_t>(leaf * 64 + bit));
      ++taken;
    }
  }
  return taken;
}

template <typename F>
uint32_t TakeDoorbells(rocegw_doorbell_page* page, F&& on_bit) {
  if (__atomic_load_n(&page->summary, __ATOMIC_RELAXED) == 0) return 0;
  const uint64_t summary = __atomic_exchange_n(&page->summary, 0, __ATOMIC_ACQ_REL);
  return TakeDoorbellLeaves(page, summary, on_bit);
}

// Looks at every leaf, whatever the summary says.
template <typename F>
uint32_t TakeAllDoorbells(rocegw_doorbell_page* page, F&& on_bit) {
  __atomic_exchange_n(&page->summary, 0, __ATOMIC_ACQ_REL);
  uint64_t leaves = 0;
  for (int i = 0; i < 64; ++i) {
    if (__atomic_load_n(&page->leaf[i], __ATOMIC_RELAXED) != 0) leaves |= uint64_t{1} << i;
  }
  return TakeDoorbellLeaves(page, leaves, on_bit);
}

}  // namespace rocegw::shm
