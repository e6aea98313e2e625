// SPDX-License-Identifier: Apache-2.0
// Configuration of tenants and pools as checked values: texts are parsed, names are full resource
// names ("tenants/T", "tenants/T/pools/P"), and unset fields have their defaults. Plain values, any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gateway/tenant/amounts.h"
#include "gateway/wire/gid.h"
#include "gateway/wire/prefix.h"
#include "proto/sizes/ready_reserve.h"

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
  bool identity_required =
      false;  // the agent must confirm a process's identity before it may attach
  uint32_t socket_mode = 0660;
  std::string socket_owner;
  bool trusted = false;
  bool remap_allowed = false;
  std::optional<bool> placement;     // FLUSH and ATOMIC WRITE, if the gateway has them
  uint64_t window_bytes = 0;         // 0: the gateway's default
  std::vector<wire::Gid> addresses;  // empty: all addresses without an owner
  std::vector<Prefix> allowed_peers;
  bool operator==(const PoolSettings&) const = default;
};

using rocegw::kReadyChunkBytes;
using rocegw::ReserveBytes;

// Returns "tenants/T" for "tenants/T/pools/P".
inline std::string TenantOf(const std::string& pool) {
  return pool.substr(0, pool.find("/pools/"));
}

// Returns true if the scope names the pool: "tenants/T/pools/P", or "tenants/T/pools/-" for all of
// T.
inline bool IsInScope(const std::string& scope, const std::string& pool) {
  return scope == pool || scope == TenantOf(pool) + "/pools/-";
}

}  // namespace rocegw::tenant
