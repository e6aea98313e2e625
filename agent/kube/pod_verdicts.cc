// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/pod_verdicts.h"

#include <utility>

namespace rocegw::agent {

void PodVerdicts::Ask(const gateway::v1::HeldAttach& attach, std::function<void(Verdict)> done) {
  if (PodUidOf(attach.cgroup()).empty()) return others_.Ask(attach, std::move(done));
  kubelet_.List([this, attach, done = std::move(done)](const StatusOr<Assignments>& answer) {
    done(answer.ok() ? slots_.Judge(attach, answer.value())
                     : Verdict{false, answer.status().text()});
  });
}

}  // namespace rocegw::agent
