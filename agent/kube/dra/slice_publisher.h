// SPDX-License-Identifier: Apache-2.0
// Keeps the node's ResourceSlices at the API server as the devices are. kubelet removes the slices
// of a driver that it has lost, so they are looked at again and again. Lives on the agent's loop;
// what it is given outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/kubeapi/api_server.h"
#include "gateway/base/time.h"
#include "gateway/session/control_loop.h"

namespace rocegw::agent {

struct PublisherPace {
  Duration look = Seconds(60);   // at slices that should be right
  Duration retry = Seconds(5);   // after an error
  Duration settle = Seconds(1);  // between a change and the next one that is published
};

class SlicePublisher {
 public:
  // sharing_lost: the API server keeps no allowMultipleAllocations: devices cannot be shared there.
  SlicePublisher(session::ControlLoop& loop, kubeapi::ApiServer& api, std::string node,
                 std::function<void()> sharing_lost, PublisherPace pace = {});
  ~SlicePublisher();
  SlicePublisher(const SlicePublisher&) = delete;
  SlicePublisher& operator=(const SlicePublisher&) = delete;

  // Until the first call nothing is published and nothing is taken away.
  void Set(std::vector<nlohmann::json> devices);
  // Looks at once: kubelet has registered the driver anew.
  void Look();
  // Why nothing is published; empty: it is.
  const std::string& problem() const { return problem_; }

 private:
  using Answered = std::function<void(const StatusOr<kubeapi::ApiAnswer>&)>;
  void At(Duration wait);
  void Begin();
  void OnNode(const StatusOr<kubeapi::ApiAnswer>& answer);
  void OnList(const StatusOr<kubeapi::ApiAnswer>& answer);
  // One change after the other, from `at` on.
  void Write(std::shared_ptr<std::vector<kubeapi::HttpRequest>> changes, size_t at);
  void OnWritten(const nlohmann::json& slice);
  void End(const std::string& problem);
  void Call(kubeapi::HttpRequest request, Answered answered);
  nlohmann::json SliceNamed(const std::string& name, const nlohmann::json& spec) const;

  session::ControlLoop& loop_;
  kubeapi::ApiServer& api_;
  const std::string node_;
  const std::function<void()> sharing_lost_;
  const PublisherPace pace_;
  std::optional<std::vector<nlohmann::json>> wanted_;
  std::string node_uid_;  // empty: not known yet
  bool busy_ = false;
  bool again_ = false;  // the devices have changed meanwhile
  std::string problem_;
  session::ControlLoop::TimerId timer_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
