// SPDX-License-Identifier: Apache-2.0
// Slots as devices of the Container Device Interface (CDI, github.com/cncf-tags/container-device-
// interface): one file per slot that was given to a container, which the container runtime reads
// when it creates the container. Files outlive the agent, since containers restart without it.
// Blocking, small; any thread.
#pragma once

#include <set>
#include <string>

#include "agent/kube/container_edits.h"
#include "gateway/base/status.h"

namespace rocegw::agent {

// How a container got the slot. Each kind has its own files.
enum class CdiKind {
  kSlot,   // by a resource in its limits
  kClaim,  // by a resource claim of its pod
};

// Returns the name of a slot's device for kubelet: "rocegw.io/slot=30c41873-0",
// "rocegw.io/claim=30c41873-0".
std::string CdiDeviceName(CdiKind kind, const std::string& slot_id);

// Returns the content of its file.
std::string CdiSpecOf(CdiKind kind, const std::string& slot_id, const ContainerEdits& edits);

// Writes the file atomically: the runtime reads the old content or the new one.
Status WriteCdiSpec(const std::string& dir, CdiKind kind, const std::string& slot_id,
                    const ContainerEdits& edits);

// Removes the files of all other slots of the kind; other vendors' files stay.
void KeepCdiSpecs(const std::string& dir, CdiKind kind, const std::set<std::string>& slot_ids);

}  // namespace rocegw::agent
