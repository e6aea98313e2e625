// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/pod_verdicts.h"

#include <utility>

#include "agent/kube/pod_cgroup.h"

namespace rocegw::agent {

void PodVerdicts::Ask(const gateway::v1::HeldAttach& attach, std::function<void(Verdict)> done) {
  // Rules of the host match by user where no cgroup is named, and root in a pod is root here.
  if (attach.cgroup().empty()) {
    return done({false,
                 "its cgroup is not known, so neither is its pod: the gateway needs the host's "
                 "process numbers (hostPID)"});
  }
  const CgroupPlace place = PlaceOf(attach.cgroup());
  // The agent's probes. Who may run a program in the agent's pod owns the gateway anyway.
  if (!own_pod_uid_.empty() && place.pod_uid == own_pod_uid_) return done({true, ""});
  if (place.place == ProcessPlace::kHost) return others_.Ask(attach, std::move(done));
  if (place.place == ProcessPlace::kUnknownContainer) {
    return done({false, "it runs in a container that is no pod of kubelet's by its cgroup (" +
                            attach.cgroup() + "), so neither slots nor attach_rules let it in"});
  }
  kubelet_.ListRecent(
      [this, attach, done = std::move(done)](const StatusOr<Assignments>& answer, bool recent) {
        const Verdict verdict = Judge(attach, answer);
        if (verdict.allowed || !recent) return done(verdict);
        // A refusal rests on an answer that is newer than the attach.
        kubelet_.List([this, attach, done](const StatusOr<Assignments>& newest, bool) {
          done(Judge(attach, newest));
        });
      });
}

Verdict PodVerdicts::Judge(const gateway::v1::HeldAttach& attach,
                           const StatusOr<Assignments>& answer) {
  return answer.ok() ? slots_.Judge(attach, answer.value())
                     : Verdict{false, answer.status().text()};
}

}  // namespace rocegw::agent
