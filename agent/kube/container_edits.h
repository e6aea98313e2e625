// SPDX-License-Identifier: Apache-2.0
// Changes to a container that holds a slot: variables and host directories, for either way of
// passing them. No secrets: kubelet stores them on its disk. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/kube/pool_offer.h"

namespace rocegw::agent {

struct ContainerSettings {
  // Host directory with librocegw-verbs.so, mounted into containers; empty: containers bring their
  // own.
  std::string library_dir;
  // Directory of the container runtime for device descriptions (CDI); empty: kubelet gets variables
  // and mounts instead.
  std::string cdi_dir;
  bool operator==(const ContainerSettings&) const = default;
};

// Host directory, mounted read-only.
struct ContainerMount {
  std::string host_path;
  std::string container_path;
  bool operator==(const ContainerMount&) const = default;
};

struct ContainerEdits {
  std::map<std::string, std::string> variables;
  std::vector<ContainerMount> mounts;
};

ContainerEdits EditsFor(const Slot& slot, const ContainerSettings& settings);

}  // namespace rocegw::agent
