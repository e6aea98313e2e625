// SPDX-License-Identifier: Apache-2.0
// Driver of dynamic resource allocation (resource.k8s.io/v1) for pools that are offered by claims:
// combines its parts. Lives on the agent's loop; its arguments outlive it.
#pragma once

#include <string>
#include <vector>

#include "agent/kube/dra/claim_counters.h"
#include "agent/kube/dra/claim_preparer.h"
#include "agent/kube/dra/claim_review.h"
#include "agent/kube/dra/dra_server.h"
#include "agent/kube/dra/resource_slices.h"
#include "agent/kube/dra/slice_publisher.h"
#include "agent/kube/slot_allocator.h"
#include "controlplane/kubeapi/api_server.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

struct DraSettings {
  bool enabled = false;
  std::vector<std::string> pools;  // "tenants/T/pools/P", or "*"
  bool shared = true;              // a pool is a device, if Kubernetes can share devices
  std::string plugins_dir = "/var/lib/kubelet/plugins";
  std::string registry_dir = "/var/lib/kubelet/plugins_registry";
  std::string node;        // name of the node in the cluster
  std::string checkpoint;  // file of prepared claims
  bool operator==(const DraSettings&) const = default;
};

class DraDriver {
 public:
  DraDriver(ControlLoop& loop, SlotAllocator& slots, kubeapi::ApiServer& api,
            const DraSettings& settings, const ContainerSettings& containers,
            PublisherPace pace = {}, Duration review = Seconds(600));
  DraDriver(const DraDriver&) = delete;
  DraDriver& operator=(const DraDriver&) = delete;

  // Updates the devices after pools or slots changed.
  void Update();
  // Checks its sockets; call periodically.
  void Look();

  const ClaimCounters& counters() const { return counters_; }

 private:
  void LoseSharing();
  void OnRegistered(const std::string& problem);

  SlotAllocator& slots_;
  const DraSettings settings_;
  DeviceSharing sharing_;
  bool updated_ = false;  // devices are known
  std::string last_problem_;
  ClaimCounters counters_;
  ClaimPreparer preparer_;
  ClaimReview review_;
  SlicePublisher publisher_;
  DraServer server_;
};

}  // namespace rocegw::agent
