// SPDX-License-Identifier: Apache-2.0
// Publication of the node's ResourceSlices at the API server. kubelet removes the slices of a
// driver that it has lost, so they are checked periodically. Lives on the agent's loop; its
// arguments outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "agent/kube/dra/claim_counters.h"
#include "controlplane/kubeapi/api_server.h"
#include "gateway/base/time.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

struct PublisherPace {
  Duration look = Seconds(60);   // interval of checks while the slices are right
  Duration retry = Seconds(5);   // interval after an error
  Duration settle = Seconds(1);  // delay that combines successive changes
};

class SlicePublisher {
 public:
  // `sharing_lost`: called if the API server does not keep allowMultipleAllocations: it cannot
  // share devices.
  SlicePublisher(ControlLoop& loop, kubeapi::ApiServer& api, std::string node,
                 ClaimCounters& counters, std::function<void()> sharing_lost,
                 PublisherPace pace = {});
  ~SlicePublisher();
  SlicePublisher(const SlicePublisher&) = delete;
  SlicePublisher& operator=(const SlicePublisher&) = delete;

  // Sets the devices. Before the first call nothing is published or removed.
  void Set(std::vector<nlohmann::json> devices);
  // Checks at once, because kubelet has registered the driver again.
  void Look();
  // Returns why nothing is published; empty: published.
  const std::string& problem() const { return problem_; }

 private:
  using Answered = std::function<void(const StatusOr<kubeapi::ApiAnswer>&)>;
  void At(Duration wait);
  void Begin();
  void OnNode(const StatusOr<kubeapi::ApiAnswer>& answer);
  void OnList(const StatusOr<kubeapi::ApiAnswer>& answer);
  // Sends one change after the other, from `at` on.
  void Write(std::shared_ptr<std::vector<kubeapi::HttpRequest>> changes, size_t at);
  void OnWritten(const nlohmann::json& slice);
  void End(const std::string& problem);
  void Call(kubeapi::HttpRequest request, Answered answered);
  nlohmann::json SliceNamed(const std::string& name, const nlohmann::json& spec) const;

  ControlLoop& loop_;
  kubeapi::ApiServer& api_;
  const std::string node_;
  ClaimCounters& counters_;
  const std::function<void()> sharing_lost_;
  const PublisherPace pace_;
  std::optional<std::vector<nlohmann::json>> wanted_;
  std::string node_uid_;  // empty: unknown yet
  bool busy_ = false;
  bool again_ = false;  // the devices changed during the update
  std::string problem_;
  ControlLoop::TimerId timer_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
