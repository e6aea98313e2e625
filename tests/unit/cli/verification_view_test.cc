// SPDX-License-Identifier: Apache-2.0
// Table of a verification, and the exit status that scripts rely on.
#include "controlplane/cli/migrate/verification_view.h"

#include <gtest/gtest.h>

#include <sstream>

#include "controlplane/cli/exit_code.h"

namespace rocegw::cli {
namespace {

using admin::v1::NodeVerification;
using admin::v1::VerifyMigrationResponse;

VerifyMigrationResponse ResponseOf(const std::vector<std::string>& verdicts) {
  VerifyMigrationResponse response;
  for (const std::string& verdict : verdicts) {
    NodeVerification& node = *response.add_nodes();
    node.set_node("n" + std::to_string(response.nodes_size()));
    node.set_state("DONE");
    node.set_expected("gateway");
    node.set_stated("gateway");
    node.set_verdict(verdict);
  }
  return response;
}

TEST(VerificationView, TheExitStatusIsTheWorstVerdict) {
  EXPECT_EQ(VerificationCode(ResponseOf({"verified", "verified"})), kOk);
  // Nothing was verified, or not each node that somebody named.
  EXPECT_EQ(VerificationCode(ResponseOf({})), kPartlyFailed);
  EXPECT_EQ(VerificationCode(ResponseOf({"no-claim"})), kPartlyFailed);
  EXPECT_EQ(VerificationCode(ResponseOf({"verified", "no-claim"})), kPartlyFailed);
  EXPECT_EQ(VerificationCode(ResponseOf({"no-claim", "failed"})), kConditionFalse);
  EXPECT_EQ(VerificationCode(ResponseOf({"verified", "unknown"})), kPartlyFailed);
  EXPECT_EQ(VerificationCode(ResponseOf({"unknown", "fell-back", "verified"})), kConditionFalse);
  EXPECT_EQ(VerificationCode(ResponseOf({"failed"})), kConditionFalse);
  // A word of a later controller is no success.
  EXPECT_EQ(VerificationCode(ResponseOf({"sideways"})), kConditionFalse);
}

TEST(VerificationView, ARowHasBothWitnesses) {
  VerifyMigrationResponse response = ResponseOf({"fell-back"});
  response.mutable_nodes(0)->set_counted("tcp");
  response.mutable_nodes(0)->set_reason("the application says gateway, but its bytes go over tcp");
  EXPECT_EQ(VerificationText(response, 0),
            "NODE  STATE  EXPECTED  STATED   COUNTED  VERDICT    WHY\n"
            "n1    DONE   gateway   gateway  tcp      fell-back  the application says gateway, but "
            "its bytes go over tcp\n");
  std::istringstream lines(VerificationText(response, 80));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(VerificationView, WithoutNodesItSaysWhy) {
  EXPECT_EQ(VerificationText({}, 80),
            "no node is verified: none has changed its transport, or all are on their way\n");
}

}  // namespace
}  // namespace rocegw::cli
