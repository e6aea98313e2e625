// SPDX-License-Identifier: Apache-2.0
// Slots as devices of the Container Device Interface (CDI, github.com/cncf-tags/container-device-
// interface): a file for each that has been given to a container, which the container runtime reads
// when it makes that container. Files outlive the agent, since containers are started anew without
// it. Blocking, small; any thread.
#pragma once

#include <set>
#include <string>

#include "agent/kube/container_edits.h"
#include "gateway/base/status.h"

namespace rocegw::agent {

// Name of a slot's device for kubelet: "rocegw.io/slot=30c41873-0".
std::string CdiDeviceName(const std::string& slot_id);

// The content of its file.
std::string CdiSpecOf(const std::string& slot_id, const ContainerEdits& edits);

// The runtime sees the old file or the new one, nothing between.
Status WriteCdiSpec(const std::string& dir, const std::string& slot_id,
                    const ContainerEdits& edits);

// Removes the files of all other slots; other vendors' are left alone.
void KeepCdiSpecs(const std::string& dir, const std::set<std::string>& slot_ids);

}  // namespace rocegw::agent
