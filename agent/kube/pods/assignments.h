// SPDX-License-Identifier: Apache-2.0
// Which pods hold which devices, as kubelet tells it. Plain values.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rocegw::agent {

struct PodName {
  std::string name_space;
  std::string name;
  // Its container has further slots, of which it cannot see more than one.
  bool several_slots = false;
  bool operator==(const PodName&) const = default;
};

// As the resource of a device: the slot of a claim, of whichever pool.
inline constexpr char kClaimedSlot[] = "rocegw.io/claim";

using DeviceKey = std::pair<std::string, std::string>;  // resource and device

// By device, never an empty list. More than one pod: kubelet still lists a finished pod whose
// device it has given to another.
using Assignments = std::map<DeviceKey, std::vector<PodName>>;

}  // namespace rocegw::agent
