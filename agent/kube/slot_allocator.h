// SPDX-License-Identifier: Apache-2.0
// Interface to the slots of pools for the code that communicates with the cluster (kubelet's device
// plugins, the driver of dynamic resource allocation). Called on the agent's loop; answers there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/kube/pods/assignments.h"
#include "agent/kube/pool_offer.h"
#include "gateway/base/status.h"

namespace rocegw::agent {

struct OfferedSlot {
  std::string id;
  bool healthy = false;
  int numa_node = -1;  // -1: unknown
  bool operator==(const OfferedSlot&) const = default;
};

// Part of a pool that the programs of a claim have together; 0: the pool's limit only.
struct SlotAmounts {
  uint64_t qps = 0;
  uint64_t bytes_per_second = 0;
  bool operator==(const SlotAmounts&) const = default;
};

class SlotAllocator {
 public:
  virtual ~SlotAllocator() = default;
  // Returns "rocegw.io/T.P" of all pools that are, or have been, offered as resources.
  virtual std::vector<std::string> Resources() const = 0;
  virtual std::vector<OfferedSlot> Slots(const std::string& resource) const = 0;

  using Prepared = std::function<void(StatusOr<std::vector<Slot>>)>;
  // Prepares slots for a new holder: earlier holders are cut off first.
  virtual void Allocate(const std::string& resource, const std::vector<std::string>& ids,
                        Prepared done) = 0;
  // Prepares slots for the start, or restart, of the holder's program: earlier sessions are ended.
  virtual void Prepare(const std::string& resource, const std::vector<std::string>& ids,
                       Prepared done) = 0;

  // Returns false if the gateway is away for longer than a restart takes, or accepts no new
  // programs.
  virtual bool IsGatewayHealthy() const = 0;
  // Returns the pools that are offered by claims.
  virtual std::vector<PoolOffer> ClaimPools() const = 0;
  // Reserves the slot for this pod, whatever kubelet lists, until Unclaim, which ends the sessions
  // of its programs. `amounts`: what the gateway lets these programs have.
  virtual void Claim(const std::string& resource, const std::string& id, const PodName& pod,
                     const std::string& pod_uid, const SlotAmounts& amounts) = 0;
  virtual void Unclaim(const std::string& resource, const std::string& id) = 0;
  virtual bool IsClaimed(const std::string& resource, const std::string& id) const = 0;
  // Returns ENOENT if the slot is not on this node any more.
  virtual StatusOr<Slot> Find(const std::string& resource, const std::string& id) const = 0;
};

}  // namespace rocegw::agent
