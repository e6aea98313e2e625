// SPDX-License-Identifier: Apache-2.0
// rocegwctl: queries controllers and gateways, and changes the desired state at controllers. Data
// goes to stdout, everything else to stderr.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>

#include "controlplane/cli/commands/completion.h"
#include "controlplane/cli/documents/quantity.h"
#include "controlplane/cli/program.h"
#include "controlplane/cli/upgrade/upgrade_commands.h"
#include "gateway/process/build_info.h"
#include "gateway/process/output.h"

namespace rocegw::cli {
namespace {

// Column of the options' texts; the rest of 80 columns is for the text.
constexpr size_t kTextColumn = 24;

constexpr char kAbout[] = "Operates a fleet of RDMA gateways, or looks into the one on this host.";

constexpr char kFooter[] =
    "Where it goes: --local, --socket: the gateway on this host. Else --controller,\n"
    "--context, the current context (rocegwctl config), the controller on this host,\n"
    "the gateway on this host.\n"
    "Environment: ROCEGW_CONTROLLER, ROCEGW_CONTEXT, ROCEGW_CONFIG,\n"
    "ROCEGW_GRPC_SOCKET, NO_COLOR.\n"
    "\n"
    "Exit status: 0 done, 1 refused for a reason that is told, 2 wrong usage,\n"
    "3 not found, 4 conflict (exists, or was changed meanwhile), 5 no right,\n"
    "6 nobody answers, 7 not in time, 8 partly done, 9 only warnings (doctor),\n"
    "10 what was asked about does not hold (status: not ready, not in sync).\n"
    "\n"
    "Examples:\n"
    "  rocegwctl status\n"
    "  rocegwctl get pools\n"
    "  rocegwctl apply -f fleet.yaml --wait\n"
    "  rocegwctl drain host-a --wait\n"
    "  rocegwctl get --help";

void AddGlobalOptions(CLI::App& app, Program& program) {
  Options& options = program.options;
  app.add_option("-o,--output", options.format, "table, wide, json, yaml or name")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml", "name"}).description(""))
      ->type_name("FORMAT")
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--timeout",
         [&options](const std::string& text) {
           const auto parsed = ParseDuration(text);
           if (!parsed.has_value() || *parsed == 0) {
             throw CLI::ValidationError("--timeout",
                                        "'" + text + "' is not a duration (5, 90s, 2m)");
           }
           options.timeout = std::chrono::milliseconds(*parsed);
         },
         "for each answer (10s); with --wait for all of it (5m)")
      ->type_name("TIME");
  app.add_option("--context", options.choice.context, "the controller of this name")
      ->type_name("NAME");
  app.add_option("--controller", options.choice.controller,
                 "the controller at this socket: unix:PATH")
      ->type_name("WHERE");
  app.add_flag("--proxy", options.choice.proxy,
               "through the proxy that http_proxy or grpc_proxy name");
  app.add_flag("--local", options.choice.local, "the gateway on this host");
  app.add_option("--socket,--gateway-socket", options.choice.gateway_socket,
                 std::string("the gateway at this socket (") + kGatewaySocket + ")")
      ->type_name("PATH");
}

int Main(int argc, char** argv) {
  Program program;
  CLI::App app(kAbout, "rocegwctl");
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(kFooter);
  app.get_formatter()->column_width(kTextColumn);
  app.set_version_flag("--version", "rocegwctl " + process::VersionText());
  AddGlobalOptions(app, program);
  AddStatusCommand(app, program);
  AddReadCommands(app, program);
  AddWriteCommands(app, program);
  AddDrainCommands(app, program);
  AddDonorCommands(app, program);
  AddPodCommands(app, program);
  AddDebugCommands(app, program);
  AddDoctorCommand(app, program);
  AddConnectivityCommands(app, program);
  AddFleetCommands(app, program);
  AddUpgradeCommands(app, program);
  AddMigrateCommands(app, program);
  AddAuditCommands(app, program);
  AddSysdumpCommand(app, program);
  AddConfigCommands(app, program);
  AddCompletionCommand(app, program);
  if (argc > 1 && std::string_view(argv[1]) == "__complete") {
    for (const std::string& word : Completions(app, program, {argv + 2, argv + argc})) {
      std::cout << word << "\n";
    }
    return kOk;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  return program.run();
}

}  // namespace
}  // namespace rocegw::cli

int main(int argc, char** argv) {
  // Suppresses gRPC's log lines between ours.
  setenv("GRPC_VERBOSITY", "NONE", 0);
  // The end of `| head` ends the output without a signal.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return rocegw::process::FinishOutput("rocegwctl", rocegw::cli::Main(argc, argv),
                                         rocegw::cli::kFailed);
  } catch (const std::exception& error) {
    std::cerr << "rocegwctl: " << error.what() << "\n";
    return rocegw::cli::kFailed;
  }
}
