// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/events/doorbells.h"

#include <bit>

namespace rocegw::session {

bool Doorbells::NeedsPage(WorkerIndex worker) const {
  for (const Page& page : pages_[worker]) {
    if (page.used < ROCEGW_DOORBELL_BITS) return false;
  }
  return true;
}

uint32_t Doorbells::AddPage(WorkerIndex worker, const shm::Block& memory) {
  pages_[worker].push_back({memory, 0, {}});
  return static_cast<uint32_t>(pages_[worker].size() - 1);
}

Doorbells::Bit Doorbells::Take(WorkerIndex worker) {
  for (uint32_t p = 0; p < pages_[worker].size(); ++p) {
    Page& page = pages_[worker][p];
    if (page.used == ROCEGW_DOORBELL_BITS) continue;
    for (uint32_t word = 0; word < page.taken.size(); ++word) {
      if (page.taken[word] == ~uint64_t{0}) continue;
      const auto bit = static_cast<uint32_t>(std::countr_one(page.taken[word]));
      page.taken[word] |= uint64_t{1} << bit;
      ++page.used;
      return {p, word * 64 + bit};
    }
  }
  return {};
}

bool Doorbells::TakeAt(WorkerIndex worker, Bit bit) {
  if (worker >= pages_.size() || bit.page >= pages_[worker].size() ||
      bit.bit >= ROCEGW_DOORBELL_BITS)
    return false;
  Page& page = pages_[worker][bit.page];
  uint64_t& word = page.taken[bit.bit / 64];
  const uint64_t mask = uint64_t{1} << (bit.bit % 64);
  if ((word & mask) != 0) return false;
  word |= mask;
  ++page.used;
  return true;
}

void Doorbells::Give(WorkerIndex worker, Bit bit) {
  Page& page = pages_[worker][bit.page];
  page.taken[bit.bit / 64] &= ~(uint64_t{1} << (bit.bit % 64));
  --page.used;
}

}  // namespace rocegw::session
