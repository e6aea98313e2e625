// SPDX-License-Identifier: Apache-2.0
// Where a process runs, by the path of its cgroup: in a pod, in a container that is no known pod's,
// or outside of containers. Pure.
//
// kubelet makes these cgroups for a pod, below ROOT (--cgroup-root; "/" by default):
//   cgroupfs driver  ROOT/kubepods[/burstable|/besteffort]/pod<uid>
//   systemd driver   ROOT/kubepods.slice[/kubepods-QOS.slice]/kubepods[-QOS]-pod<uid>.slice, with
//   '_'
//                    for '-' in the uid; a ROOT /a/b is a.slice/a-b.slice/a-b-kubepods.slice/...
// The path is anchored at the root of the hierarchy, since users have cgroups of their own, in
// which they may give any name. Paths seen from another cgroup namespace begin with "/..": the
// first name after that stands below an ancestor of the gateway's own cgroup, where only root makes
// cgroups.
#pragma once

#include <string>

namespace rocegw::agent {

enum class ProcessPlace {
  kHost,
  kPod,
  // A container's cgroup, by its names, without a pod in a form of kubelet's. Never a host process.
  kUnknownContainer,
};

struct CgroupPlace {
  ProcessPlace place = ProcessPlace::kHost;
  std::string pod_uid;  // of kPod
  bool operator==(const CgroupPlace&) const = default;
};

CgroupPlace PlaceOf(const std::string& cgroup);

// The uid of the pod that the cgroup belongs to; "" when it is no known pod's.
std::string PodUidOf(const std::string& cgroup);

}  // namespace rocegw::agent
