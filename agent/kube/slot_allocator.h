// SPDX-License-Identifier: Apache-2.0
// Slots of pools as things that a cluster gives to containers. What speaks to the cluster
// (kubelet's device plugins, the driver of dynamic resource allocation) knows no more of them than
// this. Called on the agent's loop; answers there.
#pragma once

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
  int numa_node = -1;  // -1: not known
  bool operator==(const OfferedSlot&) const = default;
};

class SlotAllocator {
 public:
  virtual ~SlotAllocator() = default;
  // "rocegw.io/T.P" of all pools that are offered as resources, or have been.
  virtual std::vector<std::string> Resources() const = 0;
  virtual std::vector<OfferedSlot> Slots(const std::string& resource) const = 0;

  using Prepared = std::function<void(StatusOr<std::vector<Slot>>)>;
  // The slots are about to go to a new holder: whoever had them is cut off first.
  virtual void Allocate(const std::string& resource, const std::vector<std::string>& ids,
                        Prepared done) = 0;
  // The holder's program is about to start, perhaps again: nobody is left from before.
  virtual void Prepare(const std::string& resource, const std::vector<std::string>& ids,
                       Prepared done) = 0;

  // false: the gateway is away for longer than a restart takes, or takes no new programs.
  virtual bool IsGatewayHealthy() const = 0;
  // Pools that are offered by claims.
  virtual std::vector<PoolOffer> ClaimPools() const = 0;
  // The slot is this pod's alone, whatever kubelet lists, until Unclaim, which ends the sessions of
  // its programs.
  virtual void Claim(const std::string& resource, const std::string& id, const PodName& pod,
                     const std::string& pod_uid) = 0;
  virtual void Unclaim(const std::string& resource, const std::string& id) = 0;
  virtual bool IsClaimed(const std::string& resource, const std::string& id) const = 0;
  // ENOENT: it is not on this node any more.
  virtual StatusOr<Slot> Find(const std::string& resource, const std::string& id) const = 0;
};

}  // namespace rocegw::agent
