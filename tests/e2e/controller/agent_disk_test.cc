// SPDX-License-Identifier: Apache-2.0
// The agent's disk is full: a join says so and keeps its token, and a certificate that cannot be
// stored is renewed when there is room.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>

#include "tests/e2e/controller/controller_host.h"
#include "tests/e2e/controller/small_disk.h"

namespace rocegw::testing {
namespace {

constexpr int kHour = 3600;

class AgentsDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(disk_.mounted()) << "needs the right to mount";
    host_.Start();
    host_.PrepareAgent();
  }

  std::string state() const { return host_.File("agent"); }
  // The agent notices a step at once; a mere delay until the certificate is due would take hours.
  void SetAhead(int seconds) const {
    std::ofstream(host_.File("clock.new")) << seconds;
    ASSERT_EQ(rename(host_.File("clock.new").c_str(), host_.File("clock").c_str()), 0);
  }

  ControllerHost host_;
  const SmallDisk disk_{host_.File("agent")};
};

TEST_F(AgentsDisk, ThatIsFull_TheJoinSaysSoAndKeepsItsToken) {
  disk_.Fill();
  const std::string said = Shell("! " + host_.JoinCommand());
  EXPECT_NE(said.find("No space left on device"), std::string::npos) << said;
  EXPECT_NE(said.find(state()), std::string::npos) << "which file: " << said;
  disk_.MakeRoom();
  Shell(host_.JoinCommand());
}

TEST_F(AgentsDisk, ThatIsFull_TheCertificateIsRenewedWithRoom) {
  Shell(host_.JoinCommand());
  SetAhead(0);
  DaemonProcess agent("/bin/sh", host_.File(""),
                      {"-c",
                       "export LD_PRELOAD=" SHIFTED_CLOCK " ROCEGW_TEST_CLOCK=" +
                           host_.File("clock") + "; exec \"$0\" \"$@\"",
                       AGENT_PROGRAM, "--config", host_.File("agent.yaml")});
  ASSERT_TRUE(agent.WaitReady()) << agent.Log();
  ASSERT_TRUE(agent.Logs("connected to the controller")) << agent.Log();
  disk_.Fill();
  SetAhead(13 * kHour);
  ASSERT_TRUE(agent.Logs("the certificate is not renewed: ")) << agent.Log();
  EXPECT_NE(agent.Log().find("No space left on device"), std::string::npos) << agent.Log();
  disk_.MakeRoom();
  SetAhead(14 * kHour);
  EXPECT_TRUE(agent.Logs("the certificate is renewed until ")) << agent.Log();
}

}  // namespace
}  // namespace rocegw::testing
