// SPDX-License-Identifier: Apache-2.0
// kubelet's answer to who holds which device (podresources/v1), at its unix socket. One question is
// under way at a time, since kubelet limits them; who asks meanwhile shares the next one, which is
// asked after he came. Made, used and destroyed on the agent's loop, which outlives it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/kube/slot_keeper.h"
#include "gateway/base/status.h"
#include "gateway/session/control_loop.h"

namespace rocegw::agent {

class PodResources {
 public:
  using Listed = std::function<void(const StatusOr<Assignments>&)>;

  PodResources(session::ControlLoop& loop, const std::string& socket);
  ~PodResources();
  PodResources(const PodResources&) = delete;
  PodResources& operator=(const PodResources&) = delete;

  // Of resources of ours.
  void List(Listed done);

 private:
  struct Kubelet;
  void Ask();

  session::ControlLoop& loop_;
  std::shared_ptr<Kubelet> kubelet_;
  std::vector<Listed> waiting_;
  bool asking_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
