// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/pod_verdicts.h"

#include <utility>

namespace rocegw::agent {

void PodVerdicts::Ask(const gateway::v1::HeldAttach& attach, std::function<void(Verdict)> done) {
  // Rules of the host match by user where no cgroup is named, and who is root in a pod is root
  // here.
  if (attach.cgroup().empty()) {
    return done({false,
                 "its cgroup is not known, so neither is its pod: nodes need cgroup version 2, and "
                 "the gateway the host's process numbers (hostPID)"});
  }
  if (PodUidOf(attach.cgroup()).empty()) return others_.Ask(attach, std::move(done));
  kubelet_.List([this, attach, done = std::move(done)](const StatusOr<Assignments>& answer) {
    done(answer.ok() ? slots_.Judge(attach, answer.value())
                     : Verdict{false, answer.status().text()});
  });
}

}  // namespace rocegw::agent
