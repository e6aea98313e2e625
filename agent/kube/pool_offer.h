// SPDX-License-Identifier: Apache-2.0
// What a gateway's pools are to Kubernetes: a resource each, with a device for every slot. Offered
// is a pool that names service accounts; others have another way to their programs. Pure.
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
  // Name of the device: the folder of the pool's sockets and the slot's number, "30c41873-0". A
  // pool that is removed and made again has other devices.
  std::string id;
  std::string directory;  // of the host; holds the attach socket
  std::string socket;     // path of the attach socket on the host
  bool operator==(const Slot&) const = default;
};

// Pods that may use a pool: all that is given must hold.
struct PodRule {
  std::string name_space;                               // empty: by labels
  std::string service_account;                          // empty: whichever
  std::map<std::string, std::string> namespace_labels;  // empty: by name
  bool operator==(const PodRule&) const = default;
};

struct PoolOffer {
  std::string pool;           // "tenants/T/pools/P"
  std::string resource;       // "rocegw.io/T.P"
  std::vector<PodRule> pods;  // who may use it: one of them holds
  std::vector<Slot> slots;
  // By claims of pods (dynamic resource allocation); else as a resource in limits of containers.
  bool by_claim = false;
  // Peak quota of the pool; 0: the pool has none of its own.
  uint64_t most_qps = 0;
  uint64_t most_bytes_per_second = 0;
  bool operator==(const PoolOffer&) const = default;
};

// All resources begin so.
inline constexpr char kResourceDomain[] = "rocegw.io/";

// kubelet is not asked to watch more resources than this of one plugin.
inline constexpr size_t kMostOffers = 100;

// By resource; those beyond kMostOffers are left out. by_claim: names of pools that are offered by
// claims, "*": all.
std::vector<PoolOffer> OfferOf(const gateway::v1::GetConfigResponse& config,
                               const std::vector<types::v1::PoolUsage>& pools,
                               const std::vector<std::string>& by_claim = {});

}  // namespace rocegw::agent
