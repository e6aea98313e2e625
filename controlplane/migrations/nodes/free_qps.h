// SPDX-License-Identifier: Apache-2.0
// Number of queue pairs that a gateway still gives to the programs of a pool: the least of what the
// pool, its tenant and the gateway have left, as the gateway's quota tree counts. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "rocegw/gateway/v1/state.pb.h"

namespace rocegw::migrations {

// Limits that the controller knows; one that is not set does not bound.
struct QpLimits {
  struct Tenant {
    uint64_t committed = 0;
    std::optional<uint64_t> peak;
  };
  std::optional<uint64_t> capacity;       // the gateway's
  std::optional<uint64_t> pool_peak;      // the pool's own
  std::map<std::string, Tenant> tenants;  // by "tenants/T"
};

struct FreeQps {
  std::string unknown;           // why the number is not known; empty: it is
  std::optional<uint64_t> free;  // not set: there is no limit
};

// `reported`: pools of the gateway, as it reports them; foreign.
FreeQps FreeQpsOf(const QpLimits& limits, const std::string& pool,
                  const gateway::v1::ListPoolsResponse& reported);

}  // namespace rocegw::migrations
