// SPDX-License-Identifier: Apache-2.0
// rocegwctl migrate verify: asks nodes of a migration which transport they use now.
#include <algorithm>
#include <iostream>
#include <memory>

#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/migrate/migrate_commands.h"
#include "controlplane/cli/migrate/verification_view.h"
#include "controlplane/cli/printing.h"
#include "rocegw/admin/v1/migrations.pb.h"

namespace rocegw::cli {
namespace {

using admin::v1::Migration;
using admin::v1::VerifyMigrationRequest;
using admin::v1::VerifyMigrationResponse;

constexpr int kNodesPerCall = 32;
// An exercise of the site may take long; servers accept no longer calls.
constexpr std::chrono::seconds kUsualTime(60);

struct VerifyQuery {
  std::string migration;
  std::vector<std::string> nodes;
};

CallResult AllNodes(Program& program, const std::string& name, std::vector<std::string>& nodes) {
  Migration migration;
  auto result = GetMigration(program, name, migration);
  for (const admin::v1::MigrationNode& node : migration.nodes()) nodes.push_back(node.name());
  return result;
}

// Asks the nodes in groups. `named`: nodes whose states stand for no transport are kept.
CallResult Ask(Program& program, const std::string& name, const std::vector<std::string>& nodes,
               bool named, VerifyMigrationResponse& all) {
  const auto timeout = program.options.timeout.count() == 0 ? std::chrono::milliseconds(kUsualTime)
                                                            : program.rpc().timeout();
  Progress line;
  for (size_t begin = 0; begin < nodes.size(); begin += kNodesPerCall) {
    VerifyMigrationRequest request;
    request.set_name(name);
    for (size_t i = begin; i < std::min(nodes.size(), begin + kNodesPerCall); ++i)
      request.add_nodes(nodes[i]);
    line.Show("asked " + std::to_string(begin) + " of " + std::to_string(nodes.size()) + " nodes");
    VerifyMigrationResponse response;
    if (auto result = program.rpc().Call("/rocegw.admin.v1.Migrations/VerifyMigration", request,
                                         response, timeout);
        !result.ok())
      return result;
    for (admin::v1::NodeVerification& node : *response.mutable_nodes()) {
      if (named || node.verdict() != "no-claim") *all.add_nodes() = std::move(node);
    }
  }
  return {};
}

int Verify(Program& program, const VerifyQuery& query) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  const std::string name = NameIn("migrations", query.migration);
  std::vector<std::string> nodes = query.nodes;
  if (nodes.empty()) {
    if (auto result = AllNodes(program, name, nodes); !result.ok()) return Fail(result);
  }
  VerifyMigrationResponse all;
  if (auto result = Ask(program, name, nodes, !query.nodes.empty(), all); !result.ok())
    return Fail(result);
  if (!PrintDocument(program, NamedMessages{{"verification", &all}}))
    std::cout << VerificationText(all, StatusLimit(program));
  return VerificationCode(all);
}

}  // namespace

void AddVerifyCommand(CLI::App& migrate, Program& program) {
  const auto query = std::make_shared<VerifyQuery>();
  CLI::App* const verify = program.Add(
      migrate, "verify", "ask nodes which transport they use now",
      "  rocegwctl migrate verify tcp-to-gateway\n"
      "  rocegwctl migrate verify tcp-to-gateway n3 n4 -o json\n"
      "Two witnesses: the application, and byte counters while the site's exercise runs.\n"
      "Without names all nodes that have changed, or are back. The migration goes on.\n"
      "Needs OPERATOR, MIGRATION_APPROVER or ADMIN. --timeout (60s) is for 32 nodes.\n"
      "Exit status: 0 all are verified, 10 a node fell back or is not as it should be,\n"
      "8 none is verified, a named node stands for no transport, or a node gave no\n"
      "answer that decides.",
      [&program, query] { return Verify(program, *query); });
  verify->add_option("MIGRATION", query->migration, "its name")->required();
  verify->add_option("NODE", query->nodes, "names of nodes; none: all that stand for a transport");
}

}  // namespace rocegw::cli
