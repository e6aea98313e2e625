// SPDX-License-Identifier: Apache-2.0
// Node of a cluster: the agent's Kubernetes part between a simulated kubelet and gateway, on a loop
// with its own thread.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "agent/kube/kubernetes.h"
#include "controlplane/kubeapi/api_server.h"
#include "tests/support/kubelet/fake_kubelet.h"
#include "tests/unit/kube/pools_gateway.h"

namespace rocegw::agent {

// Uid of the pod in which the agent runs.
inline constexpr char kOwnUid[] = "0a1b2c3d-0001-4000-8000-0000000000ff";

class Node : public ::testing::Test {
 protected:
  Node() {
    char pattern[] = "/tmp/rkXXXXXX";
    root = ::mkdtemp(pattern);
    kubelet.emplace(root);
    EXPECT_TRUE(loop.Open().ok());
    thread = std::thread([this] { loop.Run(); });
  }
  ~Node() override {
    StopAgent();
    loop.Stop();
    thread.join();
    kubelet.reset();
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }
  // Runs a task on the loop's thread.
  void OnLoop(const std::function<void()>& task) {
    std::promise<void> done;
    EXPECT_TRUE(loop.Post([&] {
      task();
      done.set_value();
    }));
    done.get_future().wait();
  }
  void StartAgent() {
    KubernetesSettings settings;
    settings.device_plugin_dir = kubelet->plugin_dir();
    settings.pod_resources_socket = kubelet->pod_resources_socket();
    settings.pod_log_dir = pod_logs;
    settings.own_pod_uid = kOwnUid;
    settings.containers.library_dir = "/opt/lib";
    settings.containers.cdi_dir = cdi_dir;
    settings.dra = dra;
    const KubernetesPace pace{Milliseconds(10),
                              Seconds(30),
                              Milliseconds(20),
                              Milliseconds(50),
                              {Milliseconds(200), Milliseconds(20), Milliseconds(5)},
                              claim_review};
    OnLoop([&] {
      agent.emplace(loop, gateway, rules, api ? &*api : nullptr, settings, pace, root + "/sys");
    });
  }
  void StopAgent() {
    OnLoop([&] { agent.reset(); });
  }
  void AddPool(int slots = 3) {
    OnLoop([&] { gateway.AddPool(testing::kPool, "30c41873", slots, {"web"}); });
  }
  Verdict Ask(const std::string& cgroup, int slot, uint32_t uid = 0) {
    gateway::v1::HeldAttach attach;
    attach.set_pool(testing::kPool);
    attach.set_uid(uid);
    attach.set_socket(testing::PoolsGateway::Socket("30c41873", slot));
    attach.set_cgroup(cgroup);
    std::promise<Verdict> verdict;
    OnLoop([&] {
      agent->verdicts().Ask(attach, [&](const Verdict& said) { verdict.set_value(said); });
    });
    return verdict.get_future().get();
  }

  std::string root;
  std::string cdi_dir;   // empty: kubelet passes slots to containers itself
  std::string pod_logs;  // empty: not used
  DraSettings dra;
  Duration claim_review = Seconds(600);
  ControlLoop loop;
  testing::PoolsGateway gateway{loop};
  std::optional<kubeapi::ApiServer> api;  // set before the agent starts
  RuleVerdicts rules{{{testing::kPool, {1000}, {}}}};
  std::optional<testing::FakeKubelet> kubelet;
  std::optional<Kubernetes> agent;
  std::thread thread;
};

}  // namespace rocegw::agent
