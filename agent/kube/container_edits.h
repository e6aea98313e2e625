// SPDX-License-Identifier: Apache-2.0
// What a container gets that holds a slot: variables and folders of the host, whichever way they
// come to it. No secrets: kubelet keeps what it is told on its disk. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/kube/pool_offer.h"

namespace rocegw::agent {

struct ContainerSettings {
  // Folder of the host with librocegw-verbs.so, mounted into containers; empty: theirs.
  std::string library_dir;
  // Folder of the container runtime for descriptions of devices (CDI); empty: kubelet is told of
  // variables and mounts instead.
  std::string cdi_dir;
  bool operator==(const ContainerSettings&) const = default;
};

// A folder of the host, to be read only.
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
