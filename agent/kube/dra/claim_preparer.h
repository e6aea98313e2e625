// SPDX-License-Identifier: Apache-2.0
// Preparation of allocated claims on this node: each device of a claim gets a slot of its pool,
// which belongs to the claim's pod until the claim is unprepared. The API server says which pod
// that is; a program at such a slot must run in the pod with that uid. Lives on the agent's loop;
// its arguments outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/kube/container_edits.h"
#include "agent/kube/dra/allocated_claim.h"
#include "agent/kube/dra/claim_counters.h"
#include "agent/kube/dra/prepared_claims.h"
#include "agent/kube/slot_allocator.h"
#include "controlplane/kubeapi/api_server.h"
#include "gateway/base/status.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

struct ClaimName {
  std::string name_space;
  std::string name;
  std::string uid;
};

struct ClaimPreparerSettings {
  std::string node;
  std::string checkpoint;        // file of prepared claims
  ContainerSettings containers;  // cdi_dir is required
};

class ClaimPreparer {
 public:
  using Prepared = std::function<void(const StatusOr<PreparedClaim>&)>;

  ClaimPreparer(ControlLoop& loop, SlotAllocator& slots, kubeapi::ApiServer& api,
                ClaimPreparerSettings settings, ClaimCounters& counters);
  ~ClaimPreparer() { *alive_ = false; }
  ClaimPreparer(const ClaimPreparer&) = delete;
  ClaimPreparer& operator=(const ClaimPreparer&) = delete;

  // Loads the claims that the previous agent had prepared. An error means that the file is damaged:
  // nothing is prepared until it is mended, since slots could be given twice.
  Status Load();
  // Prepares a claim; the same claim again gets the same devices. Concurrent calls share one
  // preparation.
  void Prepare(const ClaimName& claim, Prepared done);
  // Ends a claim for kubelet. Returns OK also for a claim that is not prepared. EAGAIN: it is being
  // prepared.
  Status Unprepare(const std::string& uid);
  // Ends a prepared claim that kubelet does not end.
  Status Release(const std::string& uid);

  const PreparedClaims& prepared() const { return prepared_; }
  const std::string& node() const { return settings_.node; }

 private:
  // Slots that are chosen and being cleared for a claim.
  struct Preparation {
    ClaimName name;
    PreparedClaim claim;
    std::vector<Prepared> waiting;
  };
  using PreparationPtr = std::shared_ptr<Preparation>;

  void OnClaim(const PreparationPtr& preparation, const StatusOr<kubeapi::ApiAnswer>& answer);
  Status Choose(const AllocatedClaim& allocated, PreparedClaim& claim);
  StatusOr<PreparedDevice> ChooseSlot(const AllocatedDevice& device, const PodName& pod) const;
  // Clears the slots of the devices from `at` on, one after the other, then ends.
  void Clear(const PreparationPtr& preparation, size_t at);
  void End(const PreparationPtr& preparation, const Status& status);
  Status Forget(PreparedClaims::iterator claim);
  Status Keep(const Preparation& preparation);
  Status WriteCdi(const PreparedClaim& claim) const;
  void RemoveOtherCdi() const;

  ControlLoop& loop_;
  SlotAllocator& slots_;
  kubeapi::ApiServer& api_;
  const ClaimPreparerSettings settings_;
  ClaimCounters& counters_;
  Status damaged_;
  PreparedClaims prepared_;
  std::map<std::string, PreparationPtr> preparing_;  // by uid of the claim
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
