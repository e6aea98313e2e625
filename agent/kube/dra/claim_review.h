// SPDX-License-Identifier: Apache-2.0
// Periodic comparison of the prepared claims with the API server. kubelet ends a claim by a call,
// but loses that duty with its own records, for example when a node is set up anew or its disk is
// restored; the slot would be held for ever. A claim that does not exist any more, or is not
// reserved for its pod, ends here. Lives on the agent's loop; its arguments outlive it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/kube/dra/claim_preparer.h"
#include "controlplane/kubeapi/api_server.h"
#include "gateway/base/time.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

// Returns true if the object is still the claim with this uid, reserved for its pod.
bool IsStillReserved(const nlohmann::json& object, const std::string& uid,
                     const std::string& pod_uid);

class ClaimReview {
 public:
  // Claims are asked about one after the other, from Start on and then once per interval.
  ClaimReview(ControlLoop& loop, ClaimPreparer& preparer, kubeapi::ApiServer& api,
              Duration interval);
  ~ClaimReview();
  ClaimReview(const ClaimReview&) = delete;
  ClaimReview& operator=(const ClaimReview&) = delete;

  // Begins, once.
  void Start();

 private:
  void Begin();
  void AskNext();
  void OnClaim(const std::string& uid, const StatusOr<kubeapi::ApiAnswer>& answer);

  ControlLoop& loop_;
  ClaimPreparer& preparer_;
  kubeapi::ApiServer& api_;
  const Duration interval_;
  bool started_ = false;
  std::vector<std::string> left_;  // uids of claims of this review
  ControlLoop::TimerId timer_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
