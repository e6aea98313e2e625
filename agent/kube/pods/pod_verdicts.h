// SPDX-License-Identifier: Apache-2.0
// Verdicts on a node of a cluster. Processes of pods are judged by kubelet's assignment of their
// slot, and by the API server's data about the pod if the pool's rules need it; processes of the
// host by the agent's rules; the agent's own pod is admitted. Fails closed: without an answer of
// kubelet or the API server no process of a pod is admitted, nor any of a container whose pod is
// unknown. Lives on the agent's loop; its arguments outlive it.
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
  // `own_pod_uid`: pod of the agent, whose probes are its own; empty: none.
  PodVerdicts(VerdictSource& others, SlotKeeper& slots, PodResources& kubelet,
              PodIdentities& identities, std::string own_pod_uid)
      : others_(others),
        slots_(slots),
        kubelet_(kubelet),
        identities_(identities),
        own_pod_uid_(std::move(own_pod_uid)) {}
  void Ask(const gateway::v1::HeldAttach& attach, std::function<void(Verdict)> done) override;

 private:
  // `recent`: the answer may be older than the attach.
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
