// SPDX-License-Identifier: Apache-2.0
// kubelet's record of assigned devices (kubelet_internal_checkpoint in the directory of device
// plugins). It is needed for one thing that PodResources leaves out: devices of plain init
// containers. The record names pods by uid; their names come from kubelet's directory of pod logs,
// which, like the record, only root can write. Reads small regular files; any thread.
#pragma once

#include <string>

#include "agent/kube/pods/assignments.h"

namespace rocegw::agent {

struct CheckpointFiles {
  std::string checkpoint;
  std::string
      pod_logs;  // directory with a NAMESPACE_NAME_UID entry per pod; empty: nothing is added
};

// Adds the holders of our devices that are not in `assignments`. A record of a pod without logs
// counts as that of a removed pod. A missing or unknown file adds nothing.
void AddFromCheckpoint(const CheckpointFiles& files, Assignments& assignments);

}  // namespace rocegw::agent
