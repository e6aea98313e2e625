// SPDX-License-Identifier: Apache-2.0
#include "gateway/doctor/examine.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/doctor/good_facts.h"

namespace rocegw::doctor {
namespace {

std::set<std::string> ChecksOf(const gateway::v1::DiagnoseResponse& response) {
  std::set<std::string> checks;
  for (const auto& diagnosis : response.diagnoses()) checks.insert(diagnosis.check());
  return checks;
}

TEST(Examine, GoodHost_EveryCheckOnceAndAllOk) {
  const auto response = Examine(GoodFacts());
  EXPECT_EQ(ChecksOf(response),
            (std::set<std::string>{
                "link",           "path_mtu",      "addresses", "receive_buffer", "offloads",
                "neighbours",     "udp_port",      "libraries", "runtime_dir",    "sockets",
                "process_memory", "processors",    "workers",   "open_files",     "send_buffer",
                "huge_pages",     "locked_memory", "clock",     "remapping",      "egress",
                "trusted_pools",  "memory_limit"}));
  EXPECT_EQ(response.diagnoses_size(), 22);
  for (const auto& diagnosis : response.diagnoses())
    EXPECT_EQ(diagnosis.severity(), gateway::v1::OK) << diagnosis.ShortDebugString();
}

TEST(Examine, SeveralPorts_EachForItself_TheWorstFirst) {
  Facts facts = GoodFacts();
  facts.gateway.ports.push_back(facts.gateway.ports[0]);
  facts.gateway.ports[1].name = "port1";
  facts.gateway.ports[1].up = false;
  facts.host.clock.synchronised = false;
  const auto response = Examine(facts);
  EXPECT_EQ(response.diagnoses_size(), 28);
  EXPECT_EQ(response.diagnoses(0).check(), "link");
  EXPECT_EQ(response.diagnoses(0).object(), "gateways/host-a/ports/port1");
  EXPECT_EQ(response.diagnoses(1).check(), "clock");
  EXPECT_EQ(response.diagnoses(2).severity(), gateway::v1::OK);
}

TEST(ExamineHostAlone, TellsWhyNobodyAnswersAndWhoHasThePort) {
  Facts facts = GoodFacts();
  facts.host.udp_port = {{.own = false, .pid = 9, .command = "rocegwd", .uid = 0}};
  auto response = ExamineHostAlone(facts, "no gateway at /run");
  EXPECT_EQ(ChecksOf(response), (std::set<std::string>{"daemon", "clock", "remapping", "egress"}));
  EXPECT_EQ(response.diagnoses(0).found(), "no gateway at /run");
  EXPECT_EQ(response.diagnoses(0).severity(), gateway::v1::FAIL);
  EXPECT_NE(response.diagnoses(0).remedy().find("systemctl"), std::string::npos);
  setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
  response = ExamineHostAlone(facts, "no gateway at /run");
  unsetenv("KUBERNETES_SERVICE_HOST");
  EXPECT_EQ(response.diagnoses(0).remedy().find("systemctl"), std::string::npos) << "in a pod";
  EXPECT_NE(response.diagnoses(0).remedy().find("kubectl"), std::string::npos);
  facts.host.udp_port[0].command = "nc";
  response = ExamineHostAlone(facts, "no gateway at /run");
  EXPECT_EQ(response.diagnoses(1).found(), "UDP 4791 is held by process 9 (nc) of user 0");
}

}  // namespace
}  // namespace rocegw::doctor
