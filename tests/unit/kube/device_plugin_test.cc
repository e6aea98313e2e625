// SPDX-License-Identifier: Apache-2.0
// The agent's end towards kubelet, over the real protocols: registration, devices, contents of
// containers, and restarts of both ends in any order.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "agent/kube/kubernetes.h"
#include "tests/support/kubelet/fake_kubelet.h"
#include "tests/unit/kube/node_fixture.h"

namespace rocegw::agent {
namespace {

using testing::Admission;
using testing::FakeKubelet;
using testing::kPool;
using testing::kResource;
using testing::kUid;
using testing::PoolsGateway;
using testing::SeenDevices;

TEST_F(Node, PoolIsOffered_ContainerGetsDirectoryLibraryAndEnvironment) {
  kubelet->Start();
  AddPool();
  StartAgent();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 3));
  const Admission admission = kubelet->Admit("web", "a", kResource);
  ASSERT_EQ(admission.problem, "");
  EXPECT_EQ(admission.device, "30c41873-0");
  const auto& container = admission.container;
  ASSERT_EQ(container.mounts_size(), 2);
  EXPECT_EQ(container.mounts(0).host_path(), "/run/rocegw/a/30c41873/0");
  EXPECT_EQ(container.mounts(0).container_path(), "/run/rocegw");
  EXPECT_TRUE(container.mounts(0).read_only());
  EXPECT_EQ(container.mounts(1).host_path(), "/opt/lib");
  EXPECT_TRUE(container.mounts(1).read_only());
  EXPECT_EQ(
      (std::map<std::string, std::string>(container.envs().begin(), container.envs().end())),
      (std::map<std::string, std::string>{{"LD_PRELOAD", "/opt/rocegw/lib/librocegw-verbs.so"},
                                          {"ROCEGW_RUN", "1"},
                                          {"ROCEGW_SLOT", "30c41873-0"},
                                          {"ROCEGW_SOCKET", "/run/rocegw/attach.sock"}}));
  EXPECT_EQ(kubelet->registrations(kResource), 1);
  OnLoop([&] {
    EXPECT_EQ(gateway.cleared, std::vector<std::string>(2, "/run/rocegw/a/30c41873/0/attach.sock"))
        << "when it was given, and before the container's start";
    EXPECT_EQ(gateway.expected, std::vector<std::string>(1, "/run/rocegw/a/30c41873/0/attach.sock"))
        << "a program comes when the container has started";
  });
}

TEST_F(Node, Cdi_ContainerGetsADeviceThatAFileDescribes) {
  cdi_dir = root + "/cdi";
  std::filesystem::create_directory(cdi_dir);
  std::ofstream(cdi_dir + "/other-vendor.json") << "{}";
  std::ofstream(cdi_dir + "/rocegw-slot-0123abcd-0.json") << "{}";
  kubelet->Start();
  AddPool();
  StartAgent();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 3));
  const Admission admission = kubelet->Admit("web", "a", kResource);
  ASSERT_EQ(admission.problem, "");
  EXPECT_EQ(admission.container.mounts_size(), 0);
  EXPECT_EQ(admission.container.envs_size(), 0);
  ASSERT_EQ(admission.container.cdi_devices_size(), 1);
  EXPECT_EQ(admission.container.cdi_devices(0).name(), "rocegw.io/slot=30c41873-0");
  const std::string file = cdi_dir + "/rocegw-slot-30c41873-0.json";
  const auto read = [&] {
    std::ifstream stream(file);
    return nlohmann::json::parse(stream);
  };
  const nlohmann::json wanted = nlohmann::json::parse(R"({
    "cdiVersion": "0.5.0",
    "kind": "rocegw.io/slot",
    "devices": [{
      "name": "30c41873-0",
      "containerEdits": {
        "env": ["LD_PRELOAD=/opt/rocegw/lib/librocegw-verbs.so", "ROCEGW_RUN=1",
                "ROCEGW_SLOT=30c41873-0", "ROCEGW_SOCKET=/run/rocegw/attach.sock"],
        "mounts": [
          {"hostPath": "/run/rocegw/a/30c41873/0", "containerPath": "/run/rocegw",
           "options": ["ro", "nosuid", "nodev", "bind"]},
          {"hostPath": "/opt/lib", "containerPath": "/opt/rocegw/lib",
           "options": ["ro", "nosuid", "nodev", "bind"]}]
      }
    }]
  })");
  EXPECT_EQ(read(), wanted);
  EXPECT_TRUE(std::filesystem::exists(cdi_dir + "/other-vendor.json"));
  EXPECT_FALSE(std::filesystem::exists(cdi_dir + "/rocegw-slot-0123abcd-0.json"))
      << "of a pool that is not there any more";
  // After a restart of the host the directory is empty, and kubelet does not ask for slots again.
  std::filesystem::remove(file);
  EXPECT_EQ(kubelet->StartAgain(kResource, "30c41873-0"), "");
  EXPECT_EQ(read(), wanted);
}

TEST_F(Node, Cdi_FileThatCannotBeWritten_RefusesTheContainerWithTheRemedy) {
  cdi_dir = root + "/missing";
  kubelet->Start();
  AddPool();
  StartAgent();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 3));
  const std::string problem = kubelet->Admit("web", "a", kResource).problem;
  EXPECT_NE(problem.find("rocegw-slot-30c41873-0.json: No such file"), std::string::npos)
      << problem;
  EXPECT_NE(problem.find("kubernetes.cdi_dir"), std::string::npos) << problem;
}

TEST_F(Node, MoreThanOneSlotForAContainer_IsRefusedWithWhatToDo) {
  kubelet->Start();
  AddPool();
  StartAgent();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 3));
  EXPECT_EQ(kubelet->Admit("web", "a", kResource, "", 2).problem,
            "a container has one slot: ask for 1 of rocegw.io/red.train");
  EXPECT_NE(kubelet->Admit("web", "a", kResource, "30c41873-7").problem.find("has no slot"),
            std::string::npos);
}

TEST_F(Node, NothingToOffer_NothingIsRegisteredAndLaterPoolsAre) {
  kubelet->Start();
  StartAgent();
  OnLoop([&] { EXPECT_EQ(agent->counters().registered, 0u); });
  AddPool();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 3));
  OnLoop([&] { gateway.RemovePools(); });
  ASSERT_TRUE(kubelet->Wait(kResource, [](const SeenDevices& seen) { return seen.empty(); }))
      << "reports zero";
  EXPECT_EQ(kubelet->registrations(kResource), 1);
}

TEST_F(Node, KubeletStartsAnew_IsRegisteredAgain) {
  kubelet->Start();
  AddPool();
  StartAgent();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 3));
  for (const bool killed : {false, true}) {
    kubelet->Stop(killed);
    kubelet->Start();
    ASSERT_TRUE(kubelet->WaitHealthy(kResource, 3));
    EXPECT_EQ(kubelet->Admit("web", "a", kResource).problem, "");
    kubelet->Release("web", "a");
  }
}

TEST_F(Node, KubeletLater_AgentAnew_SocketRemoved_AllComeTogether) {
  AddPool();
  StartAgent();
  kubelet->Start();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 3));
  StopAgent();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 0));
  StartAgent();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 3));
  const int before = kubelet->registrations(kResource);
  EXPECT_TRUE(std::filesystem::remove(kubelet->plugin_dir() + "/rocegw-red.train.sock"));
  ASSERT_TRUE(kubelet->WaitRegistrations(kResource, before + 1));
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 3));
  // Both stopped; the agent starts first.
  StopAgent();
  kubelet->Stop();
  StartAgent();
  kubelet->Start();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 3));
}

TEST_F(Node, GatewayAwayOrDraining_SlotsAreUnhealthyUntilItIsBack) {
  kubelet->Start();
  AddPool();
  StartAgent();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 3));
  OnLoop([&] { gateway.away = true; });
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 0));
  OnLoop([&] {
    gateway.away = false;
    gateway.status.mutable_start_time()->set_seconds(2);
  });
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 3));
  OnLoop([&] { gateway.status.set_admin_state(types::v1::DRAINING); });
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 0));
  OnLoop([&] { gateway.status.set_admin_state(types::v1::ACTIVE); });
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 3));
  EXPECT_EQ(kubelet->registrations(kResource), 1);
}

TEST_F(Node, NumaNode_IsThatOfThePortsInterfaces) {
  const std::string device = root + "/sys/class/net/eth0/device";
  std::filesystem::create_directories(device);
  std::ofstream(device + "/numa_node") << "1\n";
  OnLoop([&] { gateway.status.add_ports()->set_interface("eth0"); });
  kubelet->Start();
  AddPool(1);
  StartAgent();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 1));
  EXPECT_EQ(kubelet->Devices(kResource).at("30c41873-0").numa_node, 1);
  types::v1::GatewayStatus status;
  status.add_ports()->set_interface("eth0");
  status.add_ports()->set_interface("veth7");
  EXPECT_EQ(NumaNodeOf(status, root + "/sys"), -1) << "one of them is nowhere";
  EXPECT_EQ(NumaNodeOf({}, root + "/sys"), -1);
}

TEST_F(Node, Verdicts_ByKubeletForPods_ByRulesForOthers) {
  kubelet->Start();
  AddPool();
  StartAgent();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 3));
  const std::string cgroup = std::string("/kubepods/burstable/pod") + kUid + "/c";
  ASSERT_EQ(kubelet->Admit("web", "a", kResource).problem, "");
  ASSERT_EQ(kubelet->Admit("evil", "b", kResource).problem, "");
  EXPECT_TRUE(Ask(cgroup, 0).allowed);
  EXPECT_EQ(Ask(cgroup, 1).reason, "pod evil/b: tenants/red/pools/train is for namespace web only");
  EXPECT_FALSE(Ask(cgroup, 2).allowed);
  EXPECT_TRUE(Ask("/system.slice/train.service", 0, 1000).allowed);
  EXPECT_FALSE(Ask("/system.slice/train.service", 0, 1001).allowed);
  EXPECT_FALSE(Ask(cgroup, 2, 1000).allowed) << "rules are not for pods";
  EXPECT_FALSE(Ask("/system.slice/docker-" + std::string(64, 'a') + ".scope", 2, 1000).allowed)
      << "nor for containers that are not kubelet's";
  const std::string own = std::string("/kubepods/burstable/pod") + kOwnUid + "/c";
  EXPECT_TRUE(Ask(own, 2).allowed) << "the agent's own probes";
  kubelet->StopPodResources();
  Verdict unanswered = Ask(cgroup, 0);
  // kubelet's recent answer still counts.
  while (unanswered.allowed) unanswered = Ask(cgroup, 0);
  EXPECT_NE(unanswered.reason.find("kubelet does not say whose it is"), std::string::npos);
  kubelet->StartPodResources();
  // The connection is tried again a moment later.
  while (!Ask(cgroup, 0).allowed) {
  }
}

// An MPI launch. Other programs of the node have used up kubelet's rate for the next 600 ms.
TEST_F(Node, ManyAttachAtOnce_AllGetInThoughKubeletLimitsQuestions) {
  constexpr int kPrograms = 64;
  kubelet->Start();
  AddPool(kPrograms);
  StartAgent();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, kPrograms));
  for (int i = 0; i < kPrograms; ++i)
    ASSERT_EQ(kubelet->Admit("web", "rank-" + std::to_string(i), kResource).problem, "");
  kubelet->LimitRate(60);
  std::vector<std::promise<Verdict>> verdicts(kPrograms);
  for (int i = 0; i < kPrograms; ++i) {
    char uid[40];
    std::snprintf(uid, sizeof uid, "0a1b2c3d-0001-4000-8000-%012x", 0x100 + i);
    gateway::v1::HeldAttach attach;
    attach.set_pool(kPool);
    attach.set_socket(PoolsGateway::Socket("30c41873", i));
    attach.set_cgroup(std::string("/kubepods/pod") + uid + "/c");
    OnLoop([&] {
      agent->verdicts().Ask(attach, [&, i](const Verdict& said) { verdicts[i].set_value(said); });
    });
  }
  for (auto& verdict : verdicts) EXPECT_EQ(verdict.get_future().get().reason, "");
  EXPECT_GE(kubelet->turned_away(), 1) << "the limit was felt";
}

TEST_F(Node, ForeignPodsAskAllTheTime_KubeletIsNotAskedMoreThanItAllows) {
  kubelet->Start();
  AddPool(2);
  StartAgent();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 2));
  ASSERT_EQ(kubelet->Admit("evil", "a", kResource).problem, "");
  ASSERT_EQ(kubelet->Admit("web", "b", kResource).problem, "");
  kubelet->LimitRate(0);
  for (int i = 0; i < 15; ++i)
    EXPECT_FALSE(Ask(std::string("/kubepods/pod") + kUid + "/c", 0).allowed);
  EXPECT_EQ(kubelet->turned_away(), 0);
}

// kubelet lists no devices of init containers that end before the others start.
TEST_F(Node, PlainInitContainer_GetsIn) {
  pod_logs = root + "/logs";
  std::filesystem::create_directories(pod_logs + "/web_loader_" + kUid);
  kubelet->Start();
  AddPool(2);
  StartAgent();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 2));
  const Admission admission = kubelet->Admit("web", "loader", kResource);
  ASSERT_EQ(admission.problem, "");
  kubelet->MakeInit(kResource, admission.device, kUid);
  EXPECT_EQ(Ask(std::string("/kubepods/pod") + kUid + "/c", 0).reason, "");
  EXPECT_EQ(Ask(std::string("/kubepods/pod0a1b2c3d-0001-4000-8000-00000000000b/c"), 0).reason,
            "slot 30c41873-0 belongs to another pod");
  // The record stays in the file until kubelet assigns the next device; the pod's logs do not.
  std::filesystem::remove_all(pod_logs + "/web_loader_" + kUid);
  while (Ask(std::string("/kubepods/pod") + kUid + "/c", 0).reason !=
         "kubelet has given slot 30c41873-0 to no pod") {
  }
}

TEST_F(Node, PodGone_ItsSlotIsCleared) {
  kubelet->Start();
  AddPool(1);
  StartAgent();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 1));
  ASSERT_EQ(kubelet->Admit("web", "a", kResource).problem, "");
  EXPECT_TRUE(Ask(std::string("/kubepods/pod") + kUid + "/c", 0).allowed);
  OnLoop([&] { gateway.sessions[PoolsGateway::Socket("30c41873", 0)] = 3; });
  kubelet->Release("web", "a");
  uint32_t left = 1;
  while (left != 0) OnLoop([&] { left = gateway.sessions[PoolsGateway::Socket("30c41873", 0)]; });
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 1));
}

}  // namespace
}  // namespace rocegw::agent
