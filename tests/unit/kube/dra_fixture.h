// SPDX-License-Identifier: Apache-2.0
// Node of a cluster whose pools are offered to claims, with a simulated API server and kubelet.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/apiserver/fake_api_server.h"
#include "tests/support/kubelet/dra_kubelet.h"
#include "tests/unit/kube/node_fixture.h"

namespace rocegw::agent {

class DraNode : public Node {
 protected:
  static constexpr char kSlices[] = "/apis/resource.k8s.io/v1/resourceslices";

  DraNode() {
    cdi_dir = root + "/cdi";
    std::filesystem::create_directory(cdi_dir);
    std::filesystem::create_directory(root + "/api");
    server = std::make_unique<testing::FakeApiServer>(root + "/api");
    server->Put("/api/v1/nodes/n1", {{"metadata", {{"name", "n1"}, {"uid", "uid-of-n1"}}}});
    api.emplace(server->settings());
    claims = std::make_unique<testing::DraKubelet>(root);
    dra.enabled = true;
    dra.pools = {"*"};
    dra.node = "n1";
    dra.plugins_dir = claims->plugins_dir();
    dra.registry_dir = claims->registry_dir();
    dra.checkpoint = root + "/prepared-claims.json";
    kubelet->Start();
  }
  ~DraNode() override { StopAgent(); }

  // Returns the devices of the driver's slices of the node, in the order of the slices.
  std::vector<nlohmann::json> Devices() const {
    std::vector<nlohmann::json> devices;
    for (const nlohmann::json& slice : server->List(kSlices)) {
      if (slice["spec"]["driver"] != "rocegw.io" || slice["spec"]["nodeName"] != "n1") continue;
      for (const nlohmann::json& device : slice["spec"]["devices"]) devices.push_back(device);
    }
    return devices;
  }
  // Waits until the condition holds; false: not within 20 s.
  static bool Until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }
  void StartWithPool(int slots = 3) {
    AddPool(slots);
    StartAgent();
    ASSERT_TRUE(claims->Register("rocegw.io"));
    ASSERT_TRUE(Until([&] { return !Devices().empty(); }));
  }
  // Creates a pod's claim in the state that the scheduler leaves.
  testing::ClaimOfAPod Allocate(const std::string& name, const std::string& device,
                                const std::string& pod, const std::string& pod_uid,
                                const std::string& name_space = "web") {
    const testing::ClaimOfAPod claim{name_space, name, "uid-of-" + name};
    server->Put(PathOf(claim),
                {{"metadata", {{"namespace", name_space}, {"name", name}, {"uid", claim.uid}}},
                 {"status",
                  {{"allocation",
                    {{"devices",
                      {{"results",
                        {{{"driver", "other.example.com"},
                          {"pool", "n1"},
                          {"device", "gpu0"},
                          {"request", "gpu"}},
                         {{"driver", "rocegw.io"},
                          {"pool", "n1"},
                          {"device", device},
                          {"request", "rdma"},
                          {"shareID", "5d8a1f3e-0000-4000-8000-000000000001"}}}}}}}},
                   {"reservedFor", {{{"resource", "pods"}, {"name", pod}, {"uid", pod_uid}}}}}}});
    return claim;
  }
  static std::string PathOf(const testing::ClaimOfAPod& claim) {
    return "/apis/resource.k8s.io/v1/namespaces/" + claim.name_space + "/resourceclaims/" +
           claim.name;
  }
  std::vector<std::string> CdiFiles() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(cdi_dir))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  static std::string CgroupOfPod(const std::string& uid) {
    return "/kubepods/burstable/pod" + uid + "/c";
  }

  std::unique_ptr<testing::FakeApiServer> server;
  std::unique_ptr<testing::DraKubelet> claims;
};

}  // namespace rocegw::agent
