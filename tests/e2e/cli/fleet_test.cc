// SPDX-License-Identifier: Apache-2.0
// Commands on the fleet as a whole, contexts, archives: rocegwctl against a real controller.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/e2e/cli/controller_process.h"

namespace rocegw::testing {
namespace {

class RocegwctlFleetTest : public ControllerTest {};

TEST_F(RocegwctlFleetTest, Status_NotAllThere_SaysWhoAndExits10) {
  Must("create gateway ghost");
  const Outcome status = Ctl("status");
  EXPECT_EQ(status.code, 10) << status.err;
  ExpectGolden("status.txt", status.out);
  EXPECT_EQ(nlohmann::json::parse(Ctl("status -o json").out)["gateways"], 1);
  // Waiting ends.
  const Outcome waited = Ctl("status --wait --timeout 300ms");
  EXPECT_EQ(waited.code, 7);
  EXPECT_NE(waited.err.find("not in time"), std::string::npos) << waited.err;
  Must("delete gateway ghost");
  EXPECT_EQ(Ctl("status --wait").code, 0);
}

TEST_F(RocegwctlFleetTest, Drain_AbsentGateway_WaitsThenUndrain) {
  Must("create gateway lost");
  const Outcome drain = Ctl("drain lost --deadline 10m --on-deadline abort --wait --timeout 300ms");
  EXPECT_EQ(drain.code, 7) << drain.err;
  EXPECT_NE(drain.err.find("waiting for the agent to connect"), std::string::npos) << drain.err;
  const std::string operation = Ctl("get operations -o name").out;
  ASSERT_TRUE(operation.starts_with("operations/drain-lost-")) << operation;
  const auto gateway = nlohmann::json::parse(Must("get gw lost -o json"));
  EXPECT_EQ(gateway["spec"]["adminState"], "DRAINING");
  EXPECT_EQ(gateway["spec"]["drainDeadline"], "600s");
  EXPECT_EQ(gateway["spec"]["onDeadline"], "ABORT");
  EXPECT_NE(Must("operations list").find("running"), std::string::npos);
  EXPECT_EQ(Must("undrain lost"), "gateways/lost in service\n");
  const Outcome ended = Ctl("operations wait " + operation.substr(0, operation.size() - 1));
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("CANCELLED"), std::string::npos) << ended.err;
  EXPECT_EQ(Ctl("drain nobody").code, 3);
  EXPECT_EQ(Ctl("drain lost --on-deadline abort").code, 2);
  Must("delete gateway lost");
}

TEST_F(RocegwctlFleetTest, LiveStateOfAbsentGateway_SaysWhy) {
  Must("create gateway gone");
  for (const char* command : {"status gone", "get qps --gateway gone", "get counters -g gone"}) {
    const Outcome outcome = Ctl(command);
    EXPECT_NE(outcome.code, 0) << command;
    EXPECT_NE(outcome.err.find("GATEWAY_DID_NOT_ANSWER"), std::string::npos) << outcome.err;
  }
  Must("delete gateway gone");
}

TEST_F(RocegwctlFleetTest, JoinTokenRevokeAdopt_Work) {
  const std::string token = Must("join-token --gateway host-a --lifetime 10m");
  EXPECT_NE(token.find("token"), std::string::npos) << token;
  EXPECT_EQ(Ctl("join-token --lifetime 10x").code, 2);
  EXPECT_EQ(Must("fleet adopt"), "0 gateways adopted\n");
  Must("create gateway bad");
  EXPECT_EQ(Must("revoke bad"), "gateways/bad revoked\n");
  Must("delete gateway bad");
  const std::string rotated = Must("fleet rotate-keys");
  EXPECT_TRUE(rotated.starts_with("new keys from ")) << rotated;
  EXPECT_NE(rotated.find("Z; earlier ones are refused after "), std::string::npos) << rotated;
}

TEST_F(RocegwctlFleetTest, Contexts_AreKeptAndUsed) {
  EXPECT_EQ(Must("config set-context here --address unix:" + AdminSocket()),
            "context here written to " + File("config.yaml") + "\n");
  EXPECT_EQ(Ctl("config set-context far --address ctl.example:7471").code, 2);
  Must(
      "config set-context far --address ctl.example:7471 --ca ca.crt --certificate a.crt "
      "--key a.key");
  ExpectGolden("contexts.txt", Must("config get-contexts"));
  EXPECT_EQ(Must("get tenants -o name", "ROCEGW_CONTROLLER="), "");
  EXPECT_EQ(Ctl("config use-context nowhere").code, 3);
  EXPECT_EQ(Must("config use-context far"), "context far\n");
  const Outcome far = Ctl("get tenants", "ROCEGW_CONTROLLER=");
  EXPECT_EQ(far.code, 1);
  EXPECT_NE(far.err.find("ca.crt: No such file or directory"), std::string::npos) << far.err;
  EXPECT_EQ(Ctl("--context here get tenants", "ROCEGW_CONTROLLER=").code, 0);
  Must("config delete-context far");
  Must("config delete-context here");
}

TEST_F(RocegwctlFleetTest, WithCertificate_OverTls_IsWhoItSays) {
  const Outcome made =
      RunShell(File(""), std::string(CONTROLLER_PROGRAM) + " --state-dir " + File("state") +
                             " user-certificate alice --out " + File(""));
  ASSERT_EQ(made.code, 0) << made.err;
  // The port is the system's choice; the controller says it in its join file.
  const Outcome port =
      RunShell(File(""), "grep -o '127.0.0.1:[0-9]*' " + File("log") + " | head -1 | tr -d '\\n'");
  ASSERT_NE(port.out, "") << port.err;
  Must("config set-context tls --address " + port.out +
       " --ca ca.crt --certificate alice.crt "
       "--key alice.key");
  const Outcome denied = Ctl("--context tls get tenants", "ROCEGW_CONTROLLER=");
  EXPECT_EQ(denied.code, 5) << denied.err;
  EXPECT_NE(denied.err.find("PERMISSION_DENIED"), std::string::npos) << denied.err;
  Must("create rb alice role=viewer subject=spiffe://rocegw/user/alice");
  EXPECT_EQ(Ctl("--context tls get tenants", "ROCEGW_CONTROLLER=").code, 0);
  Must("config delete-context tls");
}

TEST_F(RocegwctlFleetTest, Sysdump_HasObjectsAndListsWhatFailed) {
  Must("create tenant dumped");
  const Outcome dump = Ctl("sysdump -f " + File("dump.tar.gz"));
  EXPECT_TRUE(dump.code == 0 || dump.code == 8) << dump.err;
  const Outcome files =
      RunShell(File(""), "tar tzf " + File("dump.tar.gz") + " | sed 's,^[^/]*/,,'");
  EXPECT_EQ(files.err, "");
  for (const char* file : {"about.txt", "progress.json", "tenants.json", "pools.json",
                           "gateways.json", "roleBindings.json", "operations.json"}) {
    EXPECT_NE(files.out.find(std::string(file) + "\n"), std::string::npos) << file;
  }
  EXPECT_EQ(files.out.find("failed.txt") != std::string::npos, dump.code == 8);
  const Outcome tenants =
      RunShell(File(""), "tar xzOf " + File("dump.tar.gz") + " --wildcards '*/tenants.json'");
  EXPECT_EQ(nlohmann::json::parse(tenants.out)["tenants"][0]["name"], "tenants/dumped");
  // It does not write over an earlier one.
  EXPECT_EQ(Ctl("sysdump -f " + File("dump.tar.gz")).code, 1);
}

}  // namespace
}  // namespace rocegw::testing
