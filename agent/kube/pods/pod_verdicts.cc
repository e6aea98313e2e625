// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/pods/pod_verdicts.h"

#include <utility>

#include "agent/kube/pods/pod_cgroup.h"

namespace rocegw::agent {

void PodVerdicts::Ask(const gateway::v1::HeldAttach& attach, std::function<void(Verdict)> done) {
  // Rules of the host match by user if they name no cgroup, and root in a pod is root here.
  if (attach.cgroup().empty()) {
    return done({false,
                 "its cgroup is not known, so neither is its pod: the gateway needs the host's "
                 "process numbers (hostPID)"});
  }
  const CgroupPlace place = PlaceOf(attach.cgroup());
  // The agent's own probes. A user who can run programs in the agent's pod controls the gateway
  // anyway.
  if (!own_pod_uid_.empty() && place.pod_uid == own_pod_uid_) return done({true, ""});
  if (place.place == ProcessPlace::kHost) return others_.Ask(attach, std::move(done));
  if (place.place == ProcessPlace::kUnknownContainer) {
    return done({false, "it runs in a container that is no pod of kubelet's by its cgroup (" +
                            attach.cgroup() + "), so neither slots nor attach_rules let it in"});
  }
  kubelet_.ListRecent(
      [this, attach, done = std::move(done)](const StatusOr<Assignments>& answer, bool recent) {
        Judge(attach, answer, recent, done);
      });
}

void PodVerdicts::Judge(const gateway::v1::HeldAttach& attach, const StatusOr<Assignments>& answer,
                        bool recent, std::function<void(Verdict)> done) {
  SlotKeeper::Judgement judgement;
  if (answer.ok()) {
    judgement = slots_.Judge(attach, answer.value());
  } else {
    judgement.verdict = {false, answer.status().text()};
  }
  if (judgement.verdict.allowed) return done(judgement.verdict);
  // A refusal, and a query about a pod, require an answer that is newer than the attach.
  if (recent) {
    return kubelet_.List(
        [this, attach, done = std::move(done)](const StatusOr<Assignments>& newest, bool) {
          Judge(attach, newest, false, done);
        });
  }
  if (!judgement.identity_of) return done(judgement.verdict);
  JudgeByIdentity(attach, *judgement.identity_of, std::move(done));
}

void PodVerdicts::JudgeByIdentity(const gateway::v1::HeldAttach& attach, const PodName& pod,
                                  std::function<void(Verdict)> done) {
  identities_.Ask(
      pod, PodUidOf(attach.cgroup()),
      [this, attach, pod, done = std::move(done)](const StatusOr<PodIdentity>& identity) {
        if (!identity.ok()) {
          return done(
              {false, "pod " + pod.name_space + "/" + pod.name + ": " + identity.status().text()});
        }
        // The slot may have been given to another pod while the API server was asked.
        kubelet_.ListRecent([this, attach, identity = identity.value(), done](
                                const StatusOr<Assignments>& answer, bool) {
          done(answer.ok() ? slots_.Judge(attach, answer.value(), identity).verdict
                           : Verdict{false, answer.status().text()});
        });
      });
}

}  // namespace rocegw::agent
