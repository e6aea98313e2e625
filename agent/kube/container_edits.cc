// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/container_edits.h"

namespace rocegw::agent {
namespace {

constexpr char kContainerDir[] = "/run/rocegw";
constexpr char kContainerSocket[] = "/run/rocegw/attach.sock";
constexpr char kContainerLibraryDir[] = "/opt/rocegw/lib";
constexpr char kPreload[] = "/opt/rocegw/lib/librocegw-verbs.so";

}  // namespace

ContainerEdits EditsFor(const Slot& slot, const ContainerSettings& settings) {
  ContainerEdits edits;
  edits.variables["ROCEGW_SOCKET"] = kContainerSocket;
  edits.variables["ROCEGW_SLOT"] = slot.id;
  // Makes the library log the reason of a refusal in the pod's log.
  edits.variables["ROCEGW_RUN"] = "1";
  // Mounts the directory, not the socket: a restarted gateway creates a new socket in it.
  edits.mounts.push_back({slot.directory, kContainerDir});
  if (settings.library_dir.empty()) return edits;
  edits.variables["LD_PRELOAD"] = kPreload;
  edits.mounts.push_back({settings.library_dir, kContainerLibraryDir});
  return edits;
}

}  // namespace rocegw::agent
