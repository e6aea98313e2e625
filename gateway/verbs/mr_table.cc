// SPDX-License-Identifier: Apache-2.0
#include "gateway/verbs/mr_table.h"

namespace rocegw::verbs {

const RegionConfig* MrTable::Find(MemoryKey key, SessionId session, uint32_t pd, uint32_t access,
                                  uint64_t va, uint64_t length) const {
  const RegionConfig* region = regions_.Find(key.value);
  if (region == nullptr || region->session != session || region->pd != pd) return nullptr;
  if ((region->access & access) != access) return nullptr;
  if (va < region->iova) return nullptr;
  const uint64_t offset = va - region->iova;
  if (offset > region->length || length > region->length - offset) return nullptr;
  return region;
}

}  // namespace rocegw::verbs
