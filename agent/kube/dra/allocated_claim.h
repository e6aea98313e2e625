// SPDX-License-Identifier: Apache-2.0
// ResourceClaim (resource.k8s.io/v1) as far as the driver needs it: which devices of this node it
// was allocated, and for which pod. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "agent/kube/pods/assignments.h"
#include "gateway/base/status.h"

namespace rocegw::agent {

// Name of the driver, and domain of its attributes and capacities.
inline constexpr char kDraDriver[] = "rocegw.io";

struct AllocatedDevice {
  std::string request;  // name of the claim's request, "rdma" or "rdma/subrequest"
  std::string device;   // name in this node's ResourceSlices
  bool operator==(const AllocatedDevice&) const = default;
};

struct AllocatedClaim {
  std::vector<AllocatedDevice> devices;  // of this driver on this node; at least one
  PodName pod;                           // that the claim is reserved for
  std::string pod_uid;
};

// uid: as kubelet names it. Refuses with EINVAL, and a text for people, a claim that is another one
// than kubelet's, is not allocated, is reserved for no pod or for several (a slot is for one), or
// asks for administrative access.
StatusOr<AllocatedClaim> ReadAllocatedClaim(const nlohmann::json& object, const std::string& uid,
                                            const std::string& node);

}  // namespace rocegw::agent
