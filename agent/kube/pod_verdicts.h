// SPDX-License-Identifier: Apache-2.0
// Who may attach on a node of a cluster: processes of pods by what kubelet says of their slot, all
// others by the agent's rules. Fails closed: where kubelet does not answer nobody of a pod gets in.
// Lives on the agent's loop; what it is given outlives it.
#pragma once

#include "agent/expose/attach_rules.h"
#include "agent/kube/pod_resources.h"
#include "agent/kube/slot_keeper.h"

namespace rocegw::agent {

class PodVerdicts final : public VerdictSource {
 public:
  PodVerdicts(VerdictSource& others, SlotKeeper& slots, PodResources& kubelet)
      : others_(others), slots_(slots), kubelet_(kubelet) {}
  void Ask(const gateway::v1::HeldAttach& attach, std::function<void(Verdict)> done) override;

 private:
  VerdictSource& others_;
  SlotKeeper& slots_;
  PodResources& kubelet_;
};

}  // namespace rocegw::agent
