// SPDX-License-Identifier: Apache-2.0
// Who holds which slot of this host's pools: as kubelet says, and pinned to the pod whose program
// attached first. A slot that has changed hands is cleared at the gateway before it counts as
// healthy again. Without a clock: the owner tells when the gateway is in order. Lives on the
// agent's loop, which outlives it, as does the gateway.
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
#include "gateway/session/control_loop.h"

namespace rocegw::agent {

class SlotKeeper final : public SlotAllocator {
 public:
  // pod_logs: folder with one of each pod, NAMESPACE_NAME_UID, by kubelet; empty: none, and the
  // first pod that attaches by a slot is taken for its holder. changed: Resources or Slots say
  // something else than before.
  SlotKeeper(session::ControlLoop& loop, GatewayPort& gateway, std::string pod_logs,
             std::function<void()> changed, Duration retry = Milliseconds(50));
  ~SlotKeeper() override;
  SlotKeeper(const SlotKeeper&) = delete;
  SlotKeeper& operator=(const SlotKeeper&) = delete;

  void SetOffers(std::vector<PoolOffer> offers, int numa_node);
  // A slot is about to be given, or its container to start: what kubelet said before is outdated.
  void OnAssigned(std::function<void()> assigned) { assigned_ = std::move(assigned); }
  // false: the gateway is away for longer than a restart takes, or takes no new programs.
  void SetGatewayHealthy(bool healthy);
  // What kubelet says now. Slots that have another holder than before, or none, are cleared.
  void TakeAssignments(const Assignments& told);

  struct Judgement {
    Verdict verdict;
    // The verdict is a refusal for want of this pod's identity; Judge again with it.
    std::optional<PodName> identity_of;
  };
  // Whether the process, which is in a pod, may attach; told: as kubelet says now.
  // identity: of the pod that a judgement before asked for.
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
             const std::string& pod_uid) override;
  void Unclaim(const std::string& resource, const std::string& id) override;
  bool IsClaimed(const std::string& resource, const std::string& id) const override {
    return claims_.contains({resource, id});
  }
  StatusOr<Slot> Find(const std::string& resource, const std::string& id) const override;

 private:
  struct Holding {
    PodName pod;          // as kubelet said last; empty: no pod, or several and none has attached
    std::string pod_uid;  // of the first program that attached; empty: none yet
    bool clearing = false;
  };
  using Key = DeviceKey;
  struct Holder {
    PodName pod;
    std::string pod_uid;
  };

  // What kubelet says of slots in limits, and what the claims say of theirs.
  Assignments WithClaims(const Assignments& told) const;
  StatusOr<std::vector<Slot>> FindAll(const std::string& resource,
                                      const std::vector<std::string>& ids) const;
  // Who comes when a slot is cleared: nobody yet, or the program of a container that starts.
  enum class Next { kNobody, kProgram };
  // Until nobody is left; an error when the gateway has not said so by the last attempt.
  void Clear(const std::string& socket, Next next, int attempts, std::function<void(Status)> done);
  // One slot after the other, from `at` on.
  void ClearAll(std::shared_ptr<std::vector<Slot>> slots, size_t at, Next next, Prepared done);
  void ClearFor(const std::string& resource, const std::vector<std::string>& ids, Next next,
                Prepared done);
  void ClearAfter(const Key& key);
  bool LogsNameAnother(const PodName& pod, const std::string& pod_uid) const;

  session::ControlLoop& loop_;
  GatewayPort& gateway_;
  const std::string pod_logs_;
  const std::function<void()> changed_;
  const Duration retry_;
  std::function<void()> assigned_ = [] {};
  std::map<std::string, PoolOffer> offers_;  // by resource
  std::set<std::string> resources_;          // that were ever offered in limits
  std::map<Key, Holding> holdings_;
  std::map<Key, Holder> claims_;
  int numa_node_ = -1;
  bool healthy_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
