// SPDX-License-Identifier: Apache-2.0
// An agent whose controller starts anew: it counts as connected again, although no object changes.
// The log line comes with the value of rocegw_agent_controller_connected.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/e2e/controller/controller_host.h"

namespace rocegw::testing {
namespace {

class AgentLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    host_.Start();
    host_.PrepareAgent();
    Shell(host_.JoinCommand());
  }

  // Waits until the agent has said so often that it is connected.
  static bool AwaitConnected(DaemonProcess& agent, int times) {
    const std::string line = "connected to the controller";
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < deadline) {
      const std::string log = agent.Log();
      int found = 0;
      for (size_t at = log.find(line); at != std::string::npos; at = log.find(line, at + 1))
        ++found;
      if (found >= times) return true;
    }
    return false;
  }

  ControllerHost host_;
};

TEST_F(AgentLinkTest, ControllerThatStartsAnew_IsConnectedToAgain_WithoutAChange) {
  DaemonProcess agent(AGENT_PROGRAM, host_.File("agent"), {"--config", host_.File("agent.yaml")});
  ASSERT_TRUE(agent.WaitReady()) << agent.Log();
  ASSERT_TRUE(AwaitConnected(agent, 1)) << agent.Log();
  host_.Kill();
  ASSERT_TRUE(agent.Logs("stream ended"));
  host_.Start();
  EXPECT_TRUE(AwaitConnected(agent, 2)) << agent.Log();
}

}  // namespace
}  // namespace rocegw::testing
