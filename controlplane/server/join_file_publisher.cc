// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/join_file_publisher.h"

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace rocegw::server {
namespace {

// Key of the ConfigMap, and so the name of the file in the agents' pods.
constexpr char kFile[] = "join.yaml";

kubeapi::HttpRequest PatchOf(const std::string& config_map, const std::string& join_file) {
  const size_t slash = config_map.find('/');
  const nlohmann::json data = {{"data", {{kFile, join_file}}}};
  return {"PATCH",
          "/api/v1/namespaces/" + config_map.substr(0, slash) + "/configmaps/" +
              config_map.substr(slash + 1),
          "application/merge-patch+json", data.dump()};
}

}  // namespace

JoinFilePublisher::JoinFilePublisher(kubeapi::ApiServer& api, const std::string& config_map,
                                     const std::string& join_file)
    : api_(api), config_map_(config_map), patch_(PatchOf(config_map, join_file)) {}

void JoinFilePublisher::Look(Clock::time_point now) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->busy || now < state_->next) return;
    state_->busy = true;
  }
  api_.Call(patch_, [state = state_, name = config_map_,
                     now](const StatusOr<kubeapi::ApiAnswer>& answer) {
    const std::lock_guard lock(state->mutex);
    state->busy = false;
    state->next = now + (answer.ok() ? Clock::duration(kInterval) : Clock::duration(kRetry));
    const std::string problem = answer.ok() ? "" : answer.status().text();
    if (std::exchange(state->problem, problem) != problem && !problem.empty())
      spdlog::error("agents cannot join by their pods: ConfigMap {}: {}", name, problem);
    if (!std::exchange(state->written, answer.ok()) && answer.ok())
      spdlog::info("agents join by their pods with the file in ConfigMap {}", name);
  });
}

}  // namespace rocegw::server
