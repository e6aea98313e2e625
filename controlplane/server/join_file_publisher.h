// SPDX-License-Identifier: Apache-2.0
// Publication of the agents' join file as a ConfigMap of the controller's cluster, for agents that
// join by their pod's token. The object exists already (the chart makes it empty), since a right to
// create objects cannot be limited to one name. Written at the start and once in a while, because
// another party may empty it. Any thread.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "controlplane/kubeapi/api_server.h"

namespace rocegw::server {

class JoinFilePublisher {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kInterval{10};
  static constexpr std::chrono::seconds kRetry{15};

  // `config_map`: "NAMESPACE/NAME". The API server outlives it.
  JoinFilePublisher(kubeapi::ApiServer& api, const std::string& config_map,
                    const std::string& join_file);

  // Writes the file if that is due; never waits.
  void Look(Clock::time_point now);

 private:
  // State that answers of the API server may reach after this object.
  struct State {
    std::mutex mutex;  // guards the fields below
    bool busy = false;
    bool written = false;  // the last attempt succeeded
    Clock::time_point next{};
    std::string problem;  // why the last attempt failed
  };

  kubeapi::ApiServer& api_;
  const std::string config_map_;
  const kubeapi::HttpRequest patch_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace rocegw::server
