// SPDX-License-Identifier: Apache-2.0
// Queries of kubelet for the holders of devices (podresources/v1), at its unix socket. kubelet
// answers 100 queries a second, in bursts of 10, for all programs of the node together. So one
// query is pending at a time, queries begin at least kPause apart, callers share them, and a query
// rejected for its rate is repeated. Created, used and destroyed on the agent's loop, which
// outlives it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/kube/pods/assignments.h"
#include "agent/kube/pods/pod_checkpoint.h"
#include "gateway/base/status.h"
#include "gateway/base/time.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

class PodResources {
 public:
  static constexpr Duration kPause = Milliseconds(100);
  // Age up to which an answer serves callers of ListRecent.
  static constexpr Duration kRecentAge = Milliseconds(500);

  // `recent`: the answer may be older than the call.
  using Listed = std::function<void(const StatusOr<Assignments>& answer, bool recent)>;

  PodResources(ControlLoop& loop, const std::string& socket, CheckpointFiles files);
  ~PodResources();
  PodResources(const PodResources&) = delete;
  PodResources& operator=(const PodResources&) = delete;

  // Returns the assignments of this project's resources, by a query that begins after the call.
  // Calls `done` later, within 5 s, the time that an attach waits.
  void List(Listed done);
  // Returns the same from a cached answer or a pending query if possible; may call `done` at once.
  void ListRecent(Listed done);
  // Reports that assignments have changed: earlier answers do not serve ListRecent any more.
  void Forget();

 private:
  struct Kubelet;
  struct Waiter {
    Listed done;
    TimePoint until;
    bool recent = false;
  };

  void AskWhenAllowed();
  void Ask();
  void AskAgain(std::vector<Waiter> waiters, const Status& status);
  static void Answer(const std::vector<Waiter>& waiters, const StatusOr<Assignments>& answer);

  ControlLoop& loop_;
  const CheckpointFiles files_;
  std::shared_ptr<Kubelet> kubelet_;
  std::vector<Waiter> waiting_;  // for a query that has not begun
  std::vector<Waiter> asked_;    // for the pending query
  bool asking_ = false;
  bool current_ = false;  // nothing has changed since the pending query began
  TimePoint next_at_;     // earliest start of the next query
  ControlLoop::TimerId timer_ = 0;
  std::optional<Assignments> recent_;
  TimePoint recent_at_;  // start of that query
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
