// SPDX-License-Identifier: Apache-2.0
// Offer of a gateway's pools to Kubernetes: a resource per pool, with a device per slot. Only pools
// that name service accounts are offered; others reach their programs in another way. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rocegw/gateway/v1/config.pb.h"
#include "rocegw/types/v1/gateway_state.pb.h"

namespace rocegw::agent {

struct Slot {
  // Name of the device: the pool's socket directory and the slot's number, "30c41873-0". A
  // recreated pool has other devices.
  std::string id;
  std::string directory;  // host directory with the attach socket
  std::string socket;     // path of the attach socket on the host
  bool operator==(const Slot&) const = default;
};

// Pods that may use a pool: all given conditions must hold.
struct PodRule {
  std::string name_space;                               // empty: selected by labels
  std::string service_account;                          // empty: any
  std::map<std::string, std::string> namespace_labels;  // empty: selected by name
  bool operator==(const PodRule&) const = default;
};

struct PoolOffer {
  std::string pool;           // "tenants/T/pools/P"
  std::string resource;       // "rocegw.io/T.P"
  std::vector<PodRule> pods;  // pods that may use it: any rule suffices
  std::vector<Slot> slots;
  // Offered by claims of pods (dynamic resource allocation); otherwise as a resource in limits of
  // containers.
  bool by_claim = false;
  // Peak quota of the pool; 0: no quota of its own.
  uint64_t most_qps = 0;
  uint64_t most_bytes_per_second = 0;
  bool operator==(const PoolOffer&) const = default;
};

// Prefix of all resources.
inline constexpr char kResourceDomain[] = "rocegw.io/";

// Limit of resources that one plugin announces to kubelet.
inline constexpr size_t kMostOffers = 100;

// Returns the offers by resource; leaves out those beyond kMostOffers. `by_claim`: names of pools
// that are offered by claims, "*": all.
std::vector<PoolOffer> OfferOf(const gateway::v1::GetConfigResponse& config,
                               const std::vector<types::v1::PoolUsage>& pools,
                               const std::vector<std::string>& by_claim = {});

}  // namespace rocegw::agent
