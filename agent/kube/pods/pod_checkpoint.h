// SPDX-License-Identifier: Apache-2.0
// kubelet's own record of the devices that it has given (kubelet_internal_checkpoint in the folder
// of device plugins). It is read for one thing that PodResources leaves out: devices of plain init
// containers. The record names pods by uid; their names come from kubelet's folder of pod logs,
// which only root can write, as the record. Reads small regular files; any thread.
#pragma once

#include <string>

#include "agent/kube/pods/assignments.h"

namespace rocegw::agent {

struct CheckpointFiles {
  std::string checkpoint;
  std::string pod_logs;  // with a folder NAMESPACE_NAME_UID of each pod; empty: nothing is added
};

// Adds the holders of devices of ours that `assignments` does not have. A record of a pod without
// logs counts as that of a removed pod. A file that is absent or not understood adds nothing.
void AddFromCheckpoint(const CheckpointFiles& files, Assignments& assignments);

}  // namespace rocegw::agent
