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

// By what a container has the slot: kinds differ, so that each side keeps its own files.
enum class CdiKind {
  kSlot,   // a resource in its limits
  kClaim,  // a resource claim of its pod
};

// Name of a slot's device for kubelet: "rocegw.io/slot=30c41873-0", "rocegw.io/claim=30c41873-0".
std::string CdiDeviceName(CdiKind kind, const std::string& slot_id);

// The content of its file.
std::string CdiSpecOf(CdiKind kind, const std::string& slot_id, const ContainerEdits& edits);

// The runtime sees the old file or the new one, nothing between.
Status WriteCdiSpec(const std::string& dir, CdiKind kind, const std::string& slot_id,
                    const ContainerEdits& edits);

// Removes the files of all other slots of the kind; other vendors' are left alone.
void KeepCdiSpecs(const std::string& dir, CdiKind kind, const std::set<std::string>& slot_ids);

}  // namespace rocegw::agent
