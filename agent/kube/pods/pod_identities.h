// SPDX-License-Identifier: Apache-2.0
// Identities of pods and labels of their namespaces, from the cluster's API server: kubelet gives
// only a pod's name. Answers are cached: a pod's account never changes, labels of a namespace may.
// Fails closed: an unanswered query is an error. Lives on the agent's loop, which outlives it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/kube/pods/assignments.h"
#include "controlplane/kubeapi/api_server.h"
#include "gateway/base/status.h"
#include "gateway/base/time.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

struct PodIdentity {
  std::string service_account;
  std::map<std::string, std::string> namespace_labels;
  bool operator==(const PodIdentity&) const = default;
};

class PodIdentities {
 public:
  // Lifetime of a namespace's labels. A removed label keeps new programs out after this time.
  static constexpr Duration kLabelAge = Seconds(30);
  // Limit of cached answers, for pods and for namespaces each.
  static constexpr size_t kMostKnown = 4096;

  using Told = std::function<void(const StatusOr<PodIdentity>&)>;

  // `server`: nullptr: every Ask ends with ENOTCONN.
  PodIdentities(ControlLoop& loop, kubeapi::ApiServer* server) : loop_(loop), server_(server) {}
  ~PodIdentities() { *alive_ = false; }
  PodIdentities(const PodIdentities&) = delete;
  PodIdentities& operator=(const PodIdentities&) = delete;

  // Asks for a pod; `uid`: from its cgroup. A pod of that name with another uid is an error: the
  // name was reused. Concurrent calls share a query. Calls `told` now or later on the loop.
  void Ask(const PodName& pod, const std::string& uid, Told told);

 private:
  struct Labels {
    std::map<std::string, std::string> labels;
    TimePoint asked_at;
  };
  using Answered = std::function<void(const StatusOr<kubeapi::ApiAnswer>&)>;

  void AskAccount(const PodName& pod, const std::string& uid,
                  std::function<void(const StatusOr<std::string>&)> told);
  void AskLabels(const std::string& name_space, std::string account, const Told& told);
  void Get(const std::string& path, Answered answered);

  ControlLoop& loop_;
  kubeapi::ApiServer* const server_;
  std::map<std::string, std::string> accounts_;          // by uid of the pod
  std::map<std::string, Labels> labels_;                 // by namespace
  std::map<std::string, std::vector<Answered>> asking_;  // by path
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
