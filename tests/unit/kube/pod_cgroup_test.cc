// SPDX-License-Identifier: Apache-2.0
// Cgroups of pods, of other containers, and of the host.
#include "agent/kube/pods/pod_cgroup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace rocegw::agent {
namespace {

const std::string kDashed = "0a1b2c3d-0001-4000-8000-00000000000a";
const std::string kUnderscored = "0a1b2c3d_0001_4000_8000_00000000000a";
const std::string kOther = "0a1b2c3d-0001-4000-8000-00000000000b";
const std::string kHash = "0123456789abcdef0123456789abcdef";
const std::string kId = kHash + kHash;

struct Case {
  const char* from;
  std::string cgroup;
};

TEST(PodCgroup, EveryFormOfKubelet_IsThePods) {
  const std::string docker = "/system.slice/docker-" + kId + ".scope";
  const std::vector<Case> cases{
      {"systemd, guaranteed",
       "/kubepods.slice/kubepods-pod" + kUnderscored + ".slice/cri-containerd-" + kId + ".scope"},
      {"systemd, burstable", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" +
                                 kUnderscored + ".slice/crio-" + kId + ".scope/container"},
      {"systemd, best effort", "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" +
                                   kUnderscored + ".slice"},
      {"systemd, cgroup root /kubelet (kind)",
       "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
       "kubelet-kubepods-besteffort-pod" +
           kUnderscored + ".slice/cri-containerd-" + kId + ".scope"},
      {"systemd, cgroup root /a/b",
       "/a.slice/a-b.slice/a-b-kubepods.slice/a-b-kubepods-pod" + kUnderscored + ".slice/x.scope"},
      {"systemd, kind seen from its host",
       docker + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + kUnderscored +
           ".slice/cri-containerd-" + kId + ".scope"},
      {"systemd, podman's kind seen from its host",
       "/machine.slice/libpod-" + kId + ".scope/container/kubelet.slice/kubelet-kubepods.slice/" +
           "kubelet-kubepods-pod" + kUnderscored + ".slice/cri-containerd-" + kId + ".scope"},
      {"systemd, from a pod of the same class",
       "/../../kubepods-burstable-pod" + kUnderscored + ".slice/cri-containerd-" + kId + ".scope"},
      {"systemd, from a pod of another class",
       "/../../../kubepods-besteffort.slice/kubepods-besteffort-pod" + kUnderscored + ".slice/x"},
      {"systemd, kind, from a pod",
       "/../../kubelet-kubepods-besteffort-pod" + kUnderscored + ".slice/cri-containerd-1.scope"},
      {"systemd, from a container that is no pod's",
       "/../../kubepods.slice/kubepods-pod" + kUnderscored + ".slice/x.scope"},
      {"cgroupfs, guaranteed", "/kubepods/pod" + kDashed + "/" + kId},
      {"cgroupfs, burstable", "/kubepods/burstable/pod" + kDashed + "/" + kId},
      {"cgroupfs, best effort", "/kubepods/besteffort/pod" + kDashed + "/crio-" + kId},
      {"cgroupfs, cgroup root /kubelet", "/kubelet/kubepods/besteffort/pod" + kDashed + "/" + kId},
      {"cgroupfs, version 1, kind seen from its host",
       "/docker/" + kId + "/kubelet/kubepods/burstable/pod" + kDashed + "/" + kId},
      {"cgroupfs, version 1, kind under systemd",
       docker + "/kubelet/kubepods/burstable/pod" + kDashed + "/" + kId},
      {"cgroupfs, from a pod of the same class", "/../../pod" + kDashed + "/" + kId},
      {"cgroupfs, from a pod of another class", "/../../../besteffort/pod" + kDashed + "/" + kId},
      {"cgroupfs, from a container that is no pod's", "/../../kubepods/pod" + kDashed + "/" + kId},
      {"a cgroup below the container's",
       "/kubepods/pod" + kDashed + "/" + kId + "/kubepods/pod" + kOther + "/" + kId},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(PlaceOf(one.cgroup), (CgroupPlace{ProcessPlace::kPod, kDashed}))
        << one.from << ": " << one.cgroup;
  }
  EXPECT_EQ(PodUidOf("/kubepods/pod" + kHash + "/c"), kHash) << "a pod of a file";
}

TEST(PodCgroup, WhatIsInAContainerAndNotUnderstood_IsNoHostProcess) {
  const std::vector<Case> cases{
      {"a user's own cgroup with a pod's name",
       "/user.slice/user-1000.slice/user@1000.service/kubepods.slice/kubepods-pod" + kUnderscored +
           ".slice/x.scope"},
      {"the same in folders",
       "/user.slice/user-1000.slice/user@1000.service/kubepods/pod" + kDashed + "/" + kId},
      {"the same, from a pod",
       "/../../../user.slice/user-1000.slice/user@1000.service/kubepods/pod" + kDashed + "/" + kId},
      {"a delegated service's cgroup named as kind's node",
       "/system.slice/app.service/docker-" + kId + ".scope/kubelet/kubepods/pod" + kDashed},
      {"slices that systemd does not nest",
       "/kubepods.slice/other.slice/kubepods-pod" + kUnderscored + ".slice/x.scope"},
      {"a pod's slice without its parents", "/kubepods-pod" + kUnderscored + ".slice/x.scope"},
      {"a uid of another form", "/kubepods.slice/kubepods-podcafe.slice/cri-containerd-1.scope"},
      {"a runtime whose driver is not kubelet's",
       "/system.slice/containerd.service/kubepods-burstable-pod" + kUnderscored +
           ".slice:cri-containerd:" + kId},
      {"another container of the gateway's pod", "/../cri-containerd-" + kId + ".scope"},
      {"the same in folders", "/../" + kId},
      {"docker", "/system.slice/docker-" + kId + ".scope"},
      {"docker in folders", "/docker/" + kId},
      {"podman of a user", "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" +
                               kId + ".scope/container"},
      {"lxc", "/lxc.payload.web/init.scope"},
      {"a virtual machine or nspawn", "/machine.slice/machine-web.scope"},
      {"the kubelet's slice of all pods", "/kubepods.slice"},
      {"a path that the kernel does not write", "/kubepods/../system.slice/sshd.service"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(PlaceOf(one.cgroup).place, ProcessPlace::kUnknownContainer)
        << one.from << ": " << one.cgroup;
    EXPECT_EQ(PodUidOf(one.cgroup), "") << one.cgroup;
  }
}

TEST(PodCgroup, ProcessesOfTheHost_AreInNoContainer) {
  for (const char* cgroup :
       {"/", "/init.scope", "/system.slice/sshd.service", "/system.slice/kubelet.service",
        "/system.slice/containerd.service", "/user.slice/user-0.slice/session-1.scope",
        "/user.slice/user-1000.slice/user@1000.service/app.slice/app-editor.scope",
        "/../../../../system.slice/sshd.service", "/user.slice/podcafe"})
    EXPECT_EQ(PlaceOf(cgroup), CgroupPlace{}) << cgroup;
}

}  // namespace
}  // namespace rocegw::agent
