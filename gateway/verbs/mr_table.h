// SPDX-License-Identifier: Apache-2.0
// One worker's view of the registered memory: key -> region, with the checks of every access (IBTA
// 10.6.3). Linked and unlinked by control messages between bursts; a pointer returned here is good
// until the next of them.
#pragma once

#include <cstdint>

#include "gateway/base/key_map.h"
#include "gateway/verbs/qp_config.h"

namespace rocegw::verbs {

class MrTable {
 public:
  // False when the key is there already.
  bool Link(const RegionConfig& region) { return regions_.Insert(region.key.value, region); }
  bool Unlink(MemoryKey key) { return regions_.Erase(key.value); }

  // The region when `key` belongs to the session's `pd`, grants `access` and holds
  // [va, va + length); nullptr otherwise.
  const RegionConfig* Find(MemoryKey key, SessionId session, uint32_t pd, uint32_t access,
                           uint64_t va, uint64_t length) const;

  size_t size() const { return regions_.size(); }

 private:
  KeyMap<RegionConfig> regions_;
};

}  // namespace rocegw::verbs
