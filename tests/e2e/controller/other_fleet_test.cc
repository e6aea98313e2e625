// SPDX-License-Identifier: Apache-2.0
// A controller that lost its state directory: hosts that had joined it are told what happened and
// what to do.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "rocegw/admin/v1/gateways.grpc.pb.h"
#include "tests/e2e/controller/controller_host.h"

namespace rocegw::testing {
namespace {

class OtherFleetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    host_.Start();
    std::filesystem::create_directory(host_.File("agent"));
    Shell(Agent("--join " + JoinFile()));
  }
  // A file for the name "node".
  std::string JoinFile() {
    std::ofstream(host_.File("join.yaml")) << host_.MakeJoinFile("node");
    return host_.File("join.yaml");
  }
  std::string Agent(const std::string& arguments) const {
    return std::string(AGENT_PROGRAM) + " --state-dir " + host_.File("agent") + " " + arguments;
  }
  void StartWithoutTheOldState() {
    EXPECT_EQ(host_.Stop(), 0);
    std::filesystem::remove_all(host_.State(""));
    host_.Start();
  }

  ControllerHost host_;
};

TEST_F(OtherFleetTest, Agent_SaysWhoseCertificateItIsAndWhatToDo) {
  StartWithoutTheOldState();
  std::ofstream(host_.File("agent.yaml"))
      << "state_dir: " << host_.File("agent")
      << "\nmetrics: {address: ''}\ngateway_socket: " << host_.File("none.sock") << "\n";
  DaemonProcess agent(AGENT_PROGRAM, host_.File("agent"), {"--config", host_.File("agent.yaml")});
  ASSERT_TRUE(agent.WaitReady()) << agent.Log();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (agent.Log().find("is not of the fleet that this host joined as gateways/node") ==
         std::string::npos) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << agent.Log();
  }
  EXPECT_TRUE(agent.Logs("rocegw-controller join-token --gateway node"));
  EXPECT_TRUE(agent.Logs("rocegwctl fleet adopt node"));
}

TEST_F(OtherFleetTest, SameFleet_IsTold_AndLeavingLetsTheHostJoin) {
  Shell(Agent("--same-fleet " + JoinFile()));
  StartWithoutTheOldState();
  const std::string said = Shell(Agent("--same-fleet " + JoinFile()) + "; [ $? = 3 ]");
  EXPECT_NE(said.find("this host joined another fleet, as gateways/node"), std::string::npos);
  EXPECT_NE(said.find("rocegw-agent --leave"), std::string::npos) << said;
  const std::string in_pod = Shell("KUBERNETES_SERVICE_HOST=10.0.0.1 " +
                                   Agent("--same-fleet " + JoinFile()) + "; [ $? = 3 ]");
  EXPECT_NE(in_pod.find("scripts/join-nodes"), std::string::npos) << in_pod;
  Shell(Agent("--leave"));
  Shell(Agent("--join " + JoinFile()));
  Shell(Agent("--same-fleet " + JoinFile()));
}

}  // namespace
}  // namespace rocegw::testing
