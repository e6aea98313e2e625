// SPDX-License-Identifier: Apache-2.0
// Verdicts on a node of a cluster: processes of pods are judged by what kubelet says of their slot,
// and by what the API server says of the pod where the pool's rules need that; processes of the
// host by the agent's rules, and those of the agent's own pod get in. Fails closed: where kubelet
// or the API server does not answer no process of a pod gets in, and none of a container whose pod
// is not known. Lives on the agent's loop; what it is given outlives it.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "agent/expose/attach_rules.h"
#include "agent/kube/pods/pod_identities.h"
#include "agent/kube/pods/pod_resources.h"
#include "agent/kube/slot_keeper.h"

namespace rocegw::agent {

class PodVerdicts final : public VerdictSource {
 public:
  // own_pod_uid: of the pod that the agent runs in, whose probes are its own; empty: in none.
  PodVerdicts(VerdictSource& others, SlotKeeper& slots, PodResources& kubelet,
              PodIdentities& identities, std::string own_pod_uid)
      : others_(others),
        slots_(slots),
        kubelet_(kubelet),
        identities_(identities),
        own_pod_uid_(std::move(own_pod_uid)) {}
  void Ask(const gateway::v1::HeldAttach& attach, std::function<void(Verdict)> done) override;

 private:
  // recent: of the answer, that it may be older than the attach.
  void Judge(const gateway::v1::HeldAttach& attach, const StatusOr<Assignments>& answer,
             bool recent, std::function<void(Verdict)> done);
  void JudgeByIdentity(const gateway::v1::HeldAttach& attach, const PodName& pod,
                       std::function<void(Verdict)> done);

  VerdictSource& others_;
  SlotKeeper& slots_;
  PodResources& kubelet_;
  PodIdentities& identities_;
  const std::string own_pod_uid_;
};

}  // namespace rocegw::agent
