// SPDX-License-Identifier: Apache-2.0
// Usage of pools, from the last heartbeats of the gateways connected to this controller; in memory
// only. Any thread.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "rocegw/types/v1/gateway_state.pb.h"

namespace rocegw::sync {

// Sums over gateways.
struct Usage {
  types::v1::GatewayTotals totals;
  types::v1::ReadyReserve ready;  // 0 wanted: no reserve
  uint32_t gateways = 0;          // with any usage
};

class UsageBook {
 public:
  using Pools = google::protobuf::RepeatedPtrField<types::v1::PoolTotals>;

  // Replaces the gateway's report; empty if it is disconnected.
  void Set(const std::string& gateway, const Pools& pools);
  void Remove(const std::string& gateway) { Set(gateway, {}); }

  Usage OfPool(const std::string& pool) const;
  Usage OfTenant(const std::string& tenant) const;

 private:
  Usage SumOf(const std::string& first,
              bool (*covers)(const std::string& asked, const std::string& pool)) const;

  mutable std::mutex mutex_;
  // By pool, by gateway.
  std::map<std::string, std::map<std::string, types::v1::PoolTotals>> pools_;
  std::map<std::string, std::set<std::string>> told_;  // by gateway: its pools
};

}  // namespace rocegw::sync
