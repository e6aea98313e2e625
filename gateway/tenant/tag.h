// SPDX-License-Identifier: Apache-2.0
// A tenant's name as 32 bits: what frames between gateways carry, so that a queue pair takes none
// of another tenant's. Both gateways derive it from the same name (FNV-1a). Two tenants may have
// the same one by chance, one in 2^32: it keeps honest tenants apart, and is not a secret.
#pragma once

#include <cstdint>
#include <string_view>

namespace rocegw::tenant {

// Of the tenant that "tenants/T/pools/P" belongs to.
constexpr uint32_t TagOf(std::string_view pool) {
  uint32_t tag = 0x811C9DC5;
  for (const char c : pool.substr(0, pool.find("/pools/"))) {
    tag ^= static_cast<uint8_t>(c);
    tag *= 0x01000193;
  }
  return tag;
}

}  // namespace rocegw::tenant
