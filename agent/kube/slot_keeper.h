// SPDX-License-Identifier: Apache-2.0
// Holders of this host's slots: as kubelet reports them, and pinned to the pod whose program
// attached first. A slot that changes hands is cleared at the gateway before it counts as healthy
// again. No clock: the owner reports the gateway's health. Lives on the agent's loop, which
// outlives it, as does the gateway.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/expose/attach_rules.h"
#include "agent/kube/pods/assignments.h"
#include "agent/kube/pods/pod_rules.h"
#include "agent/kube/slot_allocator.h"
#include "agent/reconcile/gateway_port.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

class SlotKeeper final : public SlotAllocator {
 public:
  // `pod_logs`: kubelet's directory with an entry NAMESPACE_NAME_UID per pod; empty: none, and the
  // first pod that attaches at a slot counts as its holder. `changed`: called when Resources or
  // Slots have changed.
  SlotKeeper(ControlLoop& loop, GatewayPort& gateway, std::string pod_logs,
             std::function<void()> changed, Duration retry = Milliseconds(50));
  ~SlotKeeper() override;
  SlotKeeper(const SlotKeeper&) = delete;
  SlotKeeper& operator=(const SlotKeeper&) = delete;

  void SetOffers(std::vector<PoolOffer> offers, int numa_node);
  // Sets a function that is called when a slot is about to be assigned, or its container to start:
  // earlier answers of kubelet are then outdated.
  void OnAssigned(std::function<void()> assigned) { assigned_ = std::move(assigned); }
  // `healthy` false: the gateway is away for longer than a restart takes, or accepts no new
  // programs.
  void SetGatewayHealthy(bool healthy);
  // Takes kubelet's assignments. Slots that have another holder than before, or none, are cleared.
  void TakeAssignments(const Assignments& told);

  struct Judgement {
    Verdict verdict;
    // Pod whose identity is missing for the verdict; call Judge again with it.
    std::optional<PodName> identity_of;
  };
  // Decides if a process in a pod may attach. `told`: kubelet's current assignments; `identity`: of
  // the pod that an earlier Judgement asked for.
  Judgement Judge(const gateway::v1::HeldAttach& attach, const Assignments& told,
                  const std::optional<PodIdentity>& identity = std::nullopt);

  std::vector<std::string> Resources() const override;
  std::vector<OfferedSlot> Slots(const std::string& resource) const override;
  void Allocate(const std::string& resource, const std::vector<std::string>& ids,
                Prepared done) override;
  void Prepare(const std::string& resource, const std::vector<std::string>& ids,
               Prepared done) override;
  bool IsGatewayHealthy() const override { return healthy_; }
  std::vector<PoolOffer> ClaimPools() const override;
  void Claim(const std::string& resource, const std::string& id, const PodName& pod,
             const std::string& pod_uid, const SlotAmounts& amounts) override;
  void Unclaim(const std::string& resource, const std::string& id) override;
  bool IsClaimed(const std::string& resource, const std::string& id) const override {
    return claims_.contains({resource, id});
  }
  StatusOr<Slot> Find(const std::string& resource, const std::string& id) const override;

 private:
  struct Holding {
    PodName pod;  // from kubelet's last answer; empty: no pod, or several and none has attached
    std::string pod_uid;  // pod of the first program that attached; empty: none yet
    bool clearing = false;
  };
  using Key = DeviceKey;
  struct Holder {
    PodName pod;
    std::string pod_uid;
    SlotAmounts amounts;
  };

  // Returns kubelet's assignments of slots in limits together with the claims' slots.
  Assignments WithClaims(const Assignments& told) const;
  StatusOr<std::vector<Slot>> FindAll(const std::string& resource,
                                      const std::vector<std::string>& ids) const;
  // Expected program after a slot is cleared: none yet, or that of a container that starts.
  enum class Next { kNobody, kProgram };
  // Repeats until no session is left; an error if the gateway has not confirmed it by the last
  // attempt.
  void Clear(const std::string& socket, Next next, int attempts, std::function<void(Status)> done);
  // Clears one slot after the other, from `at` on.
  void ClearAll(std::shared_ptr<std::vector<Slot>> slots, size_t at, Next next, Prepared done);
  void ClearFor(const std::string& resource, const std::vector<std::string>& ids, Next next,
                Prepared done);
  void ClearAfter(const Key& key);
  bool LogsNameAnother(const PodName& pod, const std::string& pod_uid) const;

  ControlLoop& loop_;
  GatewayPort& gateway_;
  const std::string pod_logs_;
  const std::function<void()> changed_;
  const Duration retry_;
  std::function<void()> assigned_ = [] {};
  std::map<std::string, PoolOffer> offers_;  // by resource
  std::set<std::string> resources_;          // ever offered in limits
  std::map<Key, Holding> holdings_;
  std::map<Key, Holder> claims_;
  int numa_node_ = -1;
  bool healthy_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
