// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/migrate/verification_view.h"

#include "controlplane/cli/exit_code.h"
#include "controlplane/cli/views/table.h"

namespace rocegw::cli {

using admin::v1::NodeVerification;

std::string VerificationText(const admin::v1::VerifyMigrationResponse& response, size_t limit) {
  if (response.nodes().empty())
    return "no node is verified: none has changed its transport, or all are on their way\n";
  Table table;
  table.AddColumn("NODE", Column::kCut);
  table.AddColumn("STATE", Column::kLeft);
  table.AddColumn("EXPECTED", Column::kLeft);
  table.AddColumn("STATED", Column::kLeft);
  table.AddColumn("COUNTED", Column::kLeft);
  table.AddColumn("VERDICT", Column::kLeft);
  table.AddColumn("WHY", Column::kCut);
  for (const NodeVerification& node : response.nodes()) {
    table.AddRow({node.node(), node.state(), OrDash(node.expected()), OrDash(node.stated()),
                  OrDash(node.counted()), node.verdict(), OrDash(node.reason())});
  }
  return table.Text(limit);
}

int VerificationCode(const admin::v1::VerifyMigrationResponse& response) {
  // Scripts take 0 for "verified": a node that was not asked, or none at all, is not.
  int code = response.nodes().empty() ? kPartlyFailed : kOk;
  for (const NodeVerification& node : response.nodes()) {
    if (node.verdict() == "verified") continue;
    if (node.verdict() != "unknown" && node.verdict() != "no-claim") return kConditionFalse;
    code = kPartlyFailed;
  }
  return code;
}

}  // namespace rocegw::cli
