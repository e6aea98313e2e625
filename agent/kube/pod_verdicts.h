// SPDX-License-Identifier: Apache-2.0
// Verdicts on a node of a cluster: processes of pods are judged by what kubelet says of their slot,
// processes of the host by the agent's rules, and those of the agent's own pod get in. Fails
// closed: where kubelet does not answer no process of a pod gets in, and none of a container whose
// pod is not known. Lives on the agent's loop; what it is given outlives it.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "agent/expose/attach_rules.h"
#include "agent/kube/pod_resources.h"
#include "agent/kube/slot_keeper.h"

namespace rocegw::agent {

class PodVerdicts final : public VerdictSource {
 public:
  // own_pod_uid: of the pod that the agent runs in, whose probes are its own; empty: in none.
  PodVerdicts(VerdictSource& others, SlotKeeper& slots, PodResources& kubelet,
              std::string own_pod_uid)
      : others_(others), slots_(slots), kubelet_(kubelet), own_pod_uid_(std::move(own_pod_uid)) {}
  void Ask(const gateway::v1::HeldAttach& attach, std::function<void(Verdict)> done) override;

 private:
  Verdict Judge(const gateway::v1::HeldAttach& attach, const StatusOr<Assignments>& answer);

  VerdictSource& others_;
  SlotKeeper& slots_;
  PodResources& kubelet_;
  const std::string own_pod_uid_;
};

}  // namespace rocegw::agent
