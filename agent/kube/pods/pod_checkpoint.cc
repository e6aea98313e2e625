// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/pods/pod_checkpoint.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "agent/kube/pool_offer.h"

namespace rocegw::agent {
namespace {

using nlohmann::json;

// Pods by uid.
std::map<std::string, PodName> PodsWithLogs(const std::string& pod_logs) {
  std::map<std::string, PodName> pods;
  std::error_code error;
  for (std::filesystem::directory_iterator at(pod_logs, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    // Names of namespaces and pods contain no underscore.
    const size_t first = name.find('_');
    const size_t second = name.find('_', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    pods[name.substr(second + 1)] = {name.substr(0, first),
                                     name.substr(first + 1, second - first - 1)};
  }
  return pods;
}

// Reads a list, or since Kubernetes 1.20 a list per NUMA node.
std::vector<std::string> DeviceIds(const json& ids) {
  std::vector<std::string> found;
  const auto add = [&](const json& list) {
    if (!list.is_array()) return;
    for (const json& id : list)
      if (id.is_string()) found.push_back(id.get<std::string>());
  };
  add(ids);
  if (ids.is_object())
    for (const auto& [node, list] : ids.items()) add(list);
  return found;
}

std::string TextOf(const json& entry, const char* field) {
  const auto found = entry.find(field);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

void AddFromCheckpoint(const CheckpointFiles& files, Assignments& assignments) {
  if (files.checkpoint.empty() || files.pod_logs.empty()) return;
  std::ifstream in(files.checkpoint);
  const json record = in ? json::parse(in, nullptr, false) : json();
  const json none = json::array();
  const json& data = record.is_object() && record.contains("Data") ? record["Data"] : none;
  const json& entries =
      data.is_object() && data.contains("PodDeviceEntries") ? data["PodDeviceEntries"] : none;
  Assignments found;
  std::map<std::string, PodName> pods;
  for (const json& entry : entries) {
    if (!entry.is_object() || !entry.contains("DeviceIDs")) continue;
    const std::string resource = TextOf(entry, "ResourceName");
    if (!resource.starts_with(kResourceDomain)) continue;
    if (pods.empty()) pods = PodsWithLogs(files.pod_logs);
    const auto pod = pods.find(TextOf(entry, "PodUID"));
    if (pod == pods.end()) continue;
    for (const std::string& id : DeviceIds(entry["DeviceIDs"])) {
      if (!assignments.contains({resource, id})) found[{resource, id}] = {pod->second};
    }
  }
  assignments.merge(found);
}

}  // namespace rocegw::agent
