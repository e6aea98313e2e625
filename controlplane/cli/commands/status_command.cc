// SPDX-License-Identifier: Apache-2.0
// status: of the fleet, of one gateway through its agent, or of the gateway on this host.
#include <iostream>

#include "controlplane/cli/commands/fleet_progress.h"
#include "controlplane/cli/commands/live_state.h"
#include "controlplane/cli/documents/documents.h"
#include "controlplane/cli/printing.h"
#include "controlplane/cli/program.h"
#include "controlplane/cli/views/object_views.h"

namespace rocegw::cli {
namespace {

// Limit of listed gateways that are not in order.
constexpr size_t kMostListed = 20;

struct StatusOptions {
  LiveQuery live;
  bool wait = false;
};

CallResult PrintTroubled(Program& program) {
  const Kind& kind = *FindKind("gateways");
  ObjectList list;
  if (auto result = program.objects().List(kind, {}, {}, list); !result.ok()) return result;
  Table table;
  table.AddColumn("GATEWAY", Column::kLeft);
  table.AddColumn("STATE", Column::kLeft);
  table.AddColumn("WHY", Column::kCut);
  size_t left_out = 0;
  for (const MessagePtr& object : list.objects) {
    const auto& gateway = static_cast<const types::v1::Gateway&>(*object);
    const std::string word = GatewayWord(gateway);
    if (word == "ok") continue;
    if (table.rows() == kMostListed) {
      ++left_out;
    } else {
      table.AddRow({ShortName(gateway.name()), word, GatewayReason(gateway, Program::Now())});
    }
  }
  if (table.rows() == 0) return {};
  std::cout << "\n" << table.Text(program.line_limit(), Program::colour());
  if (left_out != 0) {
    std::cout << "... and " << left_out << " more: rocegwctl get gateways\n";
  }
  return {};
}

int ShowFleetStatus(Program& program, bool wait) {
  FleetProgress progress;
  CallResult waited;
  if (wait) {
    waited = WaitForFleet(program, 0, true, progress);
    if (!waited.ok() && waited.code != kDeadline) return Fail(waited);
  } else if (auto result = GetProgress(program.rpc(), 0, progress); !result.ok()) {
    return Fail(result);
  }
  const std::string& format = program.options.format;
  if (format == "json" || format == "yaml") {
    std::cout << (format == "json" ? JsonText(progress) : YamlText(progress));
  } else {
    std::cout << "controller " << program.rpc().endpoint().Text() << ", revision "
              << progress.revision() << "\n"
              << ProgressText(progress) << "\n";
    if (auto result = PrintTroubled(program); !result.ok()) return Fail(result);
  }
  if (!waited.ok()) return Fail(waited);
  return AllIsWell(progress) ? kOk : kConditionFalse;
}

int ShowAnyStatus(Program& program, const StatusOptions& options) {
  if (!options.live.gateway.empty()) return ShowGatewayStatus(program, options.live);
  if (auto result = program.Open(); !result.ok()) return Fail(result);
  if (program.is_gateway()) return ShowGatewayStatus(program, options.live);
  return ShowFleetStatus(program, options.wait);
}

}  // namespace

void AddStatusCommand(CLI::App& app, Program& program) {
  const auto options = std::make_shared<StatusOptions>();
  CLI::App* const status =
      program.Add(app, "status", "the fleet and what is wrong in it, or one gateway",
                  "  rocegwctl status                        the fleet; 10: not all is well\n"
                  "  rocegwctl status --wait --timeout 2m    until all is well\n"
                  "  rocegwctl status host-a                 one gateway, through its agent\n"
                  "  rocegwctl --local status                the gateway on this host",
                  [&program, options] { return ShowAnyStatus(program, *options); });
  status->add_option("GATEWAY", options->live.gateway, "this one instead of the fleet");
  status->add_flag("--wait", options->wait, "wait until all is well, at most --timeout");
}

}  // namespace rocegw::cli
