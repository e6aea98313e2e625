// SPDX-License-Identifier: Apache-2.0
// One worker's view of the registered memory: key -> region, with the checks of every access
// (IBTA 10.6.3). Linked and unlinked by control messages between bursts; a pointer returned here is
// good until the next of them.
#pragma once

#include <cstdint>
#include <vector>

#include "gateway/verbs/qp_config.h"

namespace rocegw::verbs {

class MrTable {
 public:
  // False when the key is there already.
  bool Link(const RegionConfig& region);
  bool Unlink(MemoryKey key);

  // The region when `key` belongs to the session's `pd`, grants `access` and holds [va, va +
  // length); nullptr otherwise.
  const RegionConfig* Find(MemoryKey key, SessionId session, uint32_t pd, uint32_t access,
                           uint64_t va, uint64_t length) const;

  size_t size() const { return size_; }

 private:
  const RegionConfig* Lookup(MemoryKey key) const;
  void Rehash(size_t capacity);

  // Open addressing, linear probing; keys are random, so they are their own hash. Key 0 marks a
  // free slot.
  std::vector<RegionConfig> slots_;
  size_t size_ = 0;
};

}  // namespace rocegw::verbs
