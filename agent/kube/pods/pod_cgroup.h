// SPDX-License-Identifier: Apache-2.0
// Location of a process by the path of its cgroup: in a pod, in a container of no known pod, or
// outside of containers. Pure.
//
// kubelet creates these cgroups for a pod, below ROOT (--cgroup-root; "/" by default):
//   cgroupfs driver  ROOT/kubepods[/burstable|/besteffort]/pod<uid>
//   systemd driver   ROOT/kubepods.slice[/kubepods-QOS.slice]/kubepods[-QOS]-pod<uid>.slice,
//                    with '_' for '-' in the uid; a ROOT /a/b is
//                    a.slice/a-b.slice/a-b-kubepods.slice/...
//
// The path is anchored at the root of the hierarchy, since users have cgroups of their own with
// arbitrary names. Paths seen from another cgroup namespace begin with "/..": the first name after
// that is below an ancestor of the gateway's own cgroup, where only root creates cgroups.
#pragma once

#include <string>

namespace rocegw::agent {

enum class ProcessPlace {
  kHost,
  kPod,
  // Names look like a container's cgroup, but not like one of kubelet's pods. Never a host process.
  kUnknownContainer,
};

struct CgroupPlace {
  ProcessPlace place = ProcessPlace::kHost;
  std::string pod_uid;  // set for kPod
  bool operator==(const CgroupPlace&) const = default;
};

CgroupPlace PlaceOf(const std::string& cgroup);

// Returns the uid of the cgroup's pod; "" if it belongs to no known pod.
std::string PodUidOf(const std::string& cgroup);

}  // namespace rocegw::agent
