// SPDX-License-Identifier: Apache-2.0
// Assignments of devices to pods, as reported by kubelet. Plain values.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rocegw::agent {

struct PodName {
  std::string name_space;
  std::string name;
  // Its container has further slots, of which it can use only one.
  bool several_slots = false;
  bool operator==(const PodName&) const = default;
};

// Resource name of a device that stands for a claim's slot, of any pool.
inline constexpr char kClaimedSlot[] = "rocegw.io/claim";

using DeviceKey = std::pair<std::string, std::string>;  // resource and device

// Pods by device, never an empty list. Several pods: kubelet still lists a finished pod whose
// device it has given to another.
using Assignments = std::map<DeviceKey, std::vector<PodName>>;

}  // namespace rocegw::agent
