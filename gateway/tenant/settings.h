// SPDX-License-Identifier: Apache-2.0
// What the configuration says about tenants and pools, as checked values: texts are parsed, names
// are full resource names ("tenants/T", "tenants/T/pools/P"), fields that were not set have their
// meaning filled in. Plain values, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gateway/tenant/amounts.h"
#include "gateway/wire/gid.h"

namespace rocegw::tenant {

// Addresses that begin alike.
struct Prefix {
  wire::Gid address;
  uint8_t bits = 0;  // of the 16 bytes: 96 more than what is written for IPv4

  bool Contains(const wire::Gid& gid) const {
    const size_t whole = bits / 8;
    if (std::memcmp(address.bytes.data(), gid.bytes.data(), whole) != 0) return false;
    const uint8_t rest = bits % 8;
    return rest == 0 || ((address.bytes[whole] ^ gid.bytes[whole]) >> (8 - rest)) == 0;
  }
  bool operator==(const Prefix&) const = default;
};

// Empty: all.
inline bool Contain(const std::vector<Prefix>& prefixes, const wire::Gid& gid) {
  if (prefixes.empty()) return true;
  for (const Prefix& prefix : prefixes) {
    if (prefix.Contains(gid)) return true;
  }
  return false;
}

struct TenantSettings {
  std::string name;
  std::string uid;
  Quota quota;
  uint32_t weight = 1;
  std::vector<Prefix> allowed_peers;
  bool operator==(const TenantSettings&) const = default;
};

struct PoolSettings {
  std::string name;
  std::string uid;
  Quota quota;
  uint32_t weight = 1;
  uint32_t slots = 1;
  uint32_t socket_mode = 0660;
  std::string socket_owner;
  bool trusted = false;
  bool remap_allowed = false;
  uint64_t window_bytes = 0;         // 0: the gateway's default
  std::vector<wire::Gid> addresses;  // empty: all that no other pool owns
  std::vector<Prefix> allowed_peers;
  bool operator==(const PoolSettings&) const = default;
};

// "tenants/T" of "tenants/T/pools/P".
inline std::string TenantOf(const std::string& pool) {
  return pool.substr(0, pool.find("/pools/"));
}

}  // namespace rocegw::tenant
