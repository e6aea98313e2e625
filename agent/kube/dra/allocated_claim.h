// SPDX-License-Identifier: Apache-2.0
// Part of a ResourceClaim (resource.k8s.io/v1) that the driver needs: its allocated devices on this
// node, and its pod. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "agent/kube/pods/assignments.h"
#include "agent/kube/slot_allocator.h"
#include "gateway/base/status.h"

namespace rocegw::agent {

// Name of the driver, and domain of its attributes and capacities.
inline constexpr char kDraDriver[] = "rocegw.io";

// Returns the path of a claim at the API server.
std::string ClaimPath(const std::string& name_space, const std::string& name);

struct AllocatedDevice {
  std::string request;  // name of the claim's request, "rdma" or "rdma/subrequest"
  std::string device;   // name in this node's ResourceSlices
  SlotAmounts amounts;  // parts of a shared device that the claim takes
  bool operator==(const AllocatedDevice&) const = default;
};

struct AllocatedClaim {
  std::vector<AllocatedDevice> devices;  // devices of this driver on this node; at least one
  PodName pod;                           // pod for which the claim is reserved
  std::string pod_uid;
};

// Reads a claim; `uid`: as in kubelet's call. Returns EINVAL with a text for display if the claim
// has another uid, is not allocated, is reserved for no pod or several (a slot is for one), or asks
// for administrative access.
StatusOr<AllocatedClaim> ReadAllocatedClaim(const nlohmann::json& object, const std::string& uid,
                                            const std::string& node);

}  // namespace rocegw::agent
