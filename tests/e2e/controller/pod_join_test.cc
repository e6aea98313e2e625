// SPDX-License-Identifier: Apache-2.0
// A node of a Kubernetes cluster that joins by itself: controller and agent as programs, with an
// API server of the test. The controller publishes the join file, the agent joins with it and with
// the token of its pod.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "tests/e2e/controller/controller_host.h"
#include "tests/support/apiserver/fake_api_server.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::testing {
namespace {

constexpr char kConfigMap[] = "/api/v1/namespaces/rocegw/configmaps/rocegw-join";
constexpr char kAgent[] = "system:serviceaccount:rocegw:rocegw-agent";

class PodJoinTest : public ::testing::Test {
 protected:
  PodJoinTest() {
    setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", std::to_string(api_server_.port()).c_str(), 1);
    api_server_.Put(kConfigMap, {{"metadata", {{"name", "rocegw-join"}}}});
    host_.emplace(
        "kubernetes: {join: true, agent_account: rocegw/rocegw-agent,"
        " join_config_map: rocegw/rocegw-join, service_account_dir: " +
        account_.File("") + "}\n");
    host_->Start();
    std::filesystem::create_directory(host_->File("agent"));
  }
  ~PodJoinTest() override {
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
  }
  // Writes the ConfigMap's file as kubelet does for a pod.
  void MountJoinFile() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::string text;
    while (text.empty() && std::chrono::steady_clock::now() < deadline) {
      const auto object = api_server_.Find(kConfigMap);
      if (object->contains("data")) text = (*object)["data"].value("join.yaml", "");
      std::this_thread::yield();
    }
    ASSERT_NE(text, "");
    std::ofstream(host_->File("join.yaml")) << text;
  }
  // Lets the agent of a host join, with a token of the pod, and checks its exit status.
  std::string JoinAs(const std::string& host, const std::string& token, int status) {
    std::ofstream(host_->File("token")) << token;
    return Shell(std::string(AGENT_PROGRAM) + " --state-dir " + host_->File("agent") + " --name " +
                 host + " --join " + host_->File("join.yaml") + " --pod-token " +
                 host_->File("token") + "; [ $? = " + std::to_string(status) + " ]");
  }

  ScratchDirectory account_;
  FakeApiServer api_server_{account_.File("")};
  std::optional<ControllerHost> host_;
};

TEST_F(PodJoinTest, NodeJoinsByItself_WithTheTokenOfItsPod) {
  MountJoinFile();
  api_server_.PutToken("of-a", {kAgent, "node-a.example", "rocegw-join"});
  const std::string other = JoinAs("node-b", "of-a", 3);
  EXPECT_NE(other.find("node-a.example, which is not gateways/node-b"), std::string::npos) << other;
  const std::string unknown = JoinAs("node-a", "forged", 3);
  EXPECT_NE(unknown.find("does not know this token"), std::string::npos) << unknown;
  EXPECT_NE(JoinAs("node-a", "of-a", 0).find("joined as gateways/node-a"), std::string::npos);
  const std::string audit = Shell(
      std::string(ROCEGWCTL) + " --controller unix:" + host_->State("admin.sock") + " audit list");
  EXPECT_NE(audit.find("gateways/node-a"), std::string::npos) << audit;
}

TEST_F(PodJoinTest, FileWithoutAToken_NeedsThePodsToken) {
  MountJoinFile();
  const std::string said =
      Shell(std::string(AGENT_PROGRAM) + " --state-dir " + host_->File("agent") +
            " --name node-a --join " + host_->File("join.yaml") + "; [ $? = 2 ]");
  EXPECT_NE(said.find("--pod-token"), std::string::npos) << said;
}

}  // namespace
}  // namespace rocegw::testing
