// SPDX-License-Identifier: Apache-2.0
// Hash of a tenant's name in 32 bits (FNV-1a). Frames between gateways carry it, so that a queue
// pair accepts frames of its own tenant only. Both gateways compute it from the same name. Two
// tenants have the same tag with probability 2^-32: it separates honest tenants and is not a
// secret.
#pragma once

#include <cstdint>
#include <string_view>

namespace rocegw::tenant {

// Returns the tag of the tenant in "tenants/T/pools/P".
constexpr uint32_t TagOf(std::string_view pool) {
  uint32_t tag = 0x811C9DC5;
  for (const char c : pool.substr(0, pool.find("/pools/"))) {
    tag ^= static_cast<uint8_t>(c);
    tag *= 0x01000193;
  }
  return tag;
}

}  // namespace rocegw::tenant
