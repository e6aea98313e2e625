// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/dra/claim_review.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/kube/dra/allocated_claim.h"

namespace rocegw::agent {

using nlohmann::json;

bool IsStillReserved(const json& object, const std::string& uid, const std::string& pod_uid) {
  const json::json_pointer uid_at("/metadata/uid");
  const json::json_pointer reserved_at("/status/reservedFor");
  if (!object.is_object() || !object.contains(uid_at) || object.at(uid_at) != uid) return false;
  if (!object.contains(reserved_at) || !object.at(reserved_at).is_array()) return false;
  return std::ranges::any_of(object.at(reserved_at), [&](const json& holder) {
    return holder.is_object() && holder.contains("uid") && holder["uid"] == pod_uid;
  });
}

ClaimReview::ClaimReview(ControlLoop& loop, ClaimPreparer& preparer, kubeapi::ApiServer& api,
                         Duration interval)
    : loop_(loop), preparer_(preparer), api_(api), interval_(interval) {}

ClaimReview::~ClaimReview() {
  *alive_ = false;
  loop_.Cancel(timer_);
}

void ClaimReview::Start() {
  if (!std::exchange(started_, true)) Begin();
}

void ClaimReview::Begin() {
  timer_ = 0;
  for (const auto& [uid, claim] : preparer_.prepared()) {
    // Checkpoints of earlier versions have no names of claims.
    if (!claim.claim.empty()) left_.push_back(uid);
  }
  AskNext();
}

void ClaimReview::AskNext() {
  while (!left_.empty()) {
    const std::string uid = left_.back();
    left_.pop_back();
    const auto known = preparer_.prepared().find(uid);
    if (known == preparer_.prepared().end()) continue;
    return api_.Call(
        {"GET", ClaimPath(known->second.pod.name_space, known->second.claim), "", ""},
        [&loop = loop_, this, uid, alive = alive_](const StatusOr<kubeapi::ApiAnswer>& answer) {
          (void)loop.Post([this, uid, alive, answer] {
            if (*alive) OnClaim(uid, answer);
          });
        });
  }
  timer_ = loop_.At(ControlLoop::Now() + interval_, [this] { Begin(); });
}

void ClaimReview::OnClaim(const std::string& uid, const StatusOr<kubeapi::ApiAnswer>& answer) {
  const auto known = preparer_.prepared().find(uid);
  const bool answered = answer.ok() || answer.status().error() == ENOENT;
  // An API server that does not answer says nothing about the claim.
  if (answered && known != preparer_.prepared().end() &&
      !(answer.ok() && IsStillReserved(answer.value().object, uid, known->second.pod_uid))) {
    spdlog::warn("claim {}/{} of pod {} ended without kubelet: its slot is free again",
                 known->second.pod.name_space, known->second.claim, known->second.pod.name);
    if (const Status released = preparer_.Release(uid); !released.ok())
      spdlog::warn("{}", released.text());
  }
  AskNext();
}

}  // namespace rocegw::agent
