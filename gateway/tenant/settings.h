// SPDX-License-Identifier: Apache-2.0
// What the configuration says about tenants and pools, as checked values: texts are parsed, names
// are full resource names ("tenants/T", "tenants/T/pools/P"), fields that were not set have their
// meaning filled in. Plain values, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gateway/base/ready_reserve.h"
#include "gateway/tenant/amounts.h"
#include "gateway/wire/gid.h"
#include "gateway/wire/prefix.h"

namespace rocegw::tenant {

using wire::Prefix;

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
  uint32_t ready_qps = 0;
  bool identity_required = false;  // the agent must vouch for a process before it may attach
  uint32_t socket_mode = 0660;
  std::string socket_owner;
  bool trusted = false;
  bool remap_allowed = false;
  std::optional<bool> placement;     // FLUSH and ATOMIC WRITE, where the gateway has them
  uint64_t window_bytes = 0;         // 0: the gateway's default
  std::vector<wire::Gid> addresses;  // empty: all that no other pool owns
  std::vector<Prefix> allowed_peers;
  bool operator==(const PoolSettings&) const = default;
};

using rocegw::kReadyChunkBytes;
using rocegw::ReserveBytes;

// "tenants/T" of "tenants/T/pools/P".
inline std::string TenantOf(const std::string& pool) {
  return pool.substr(0, pool.find("/pools/"));
}

// Whether the pool is what a scope names: "tenants/T/pools/P", or "tenants/T/pools/-" for all of T.
inline bool IsInScope(const std::string& scope, const std::string& pool) {
  return scope == pool || scope == TenantOf(pool) + "/pools/-";
}

}  // namespace rocegw::tenant
