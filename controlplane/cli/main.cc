// SPDX-License-Identifier: Apache-2.0
// rocegwctl: asks a gateway what it is doing. Data goes to stdout, everything else to stderr.
#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <string>

#include "controlplane/cli/documents.h"
#include "controlplane/cli/exit_code.h"
#include "controlplane/cli/state_client.h"
#include "controlplane/cli/state_views.h"
#include "gateway/process/build_info.h"

namespace rocegw::cli {
namespace {

// How many rows of each table `status` shows.
constexpr size_t kStatusRows = 20;

struct Options {
  std::string socket = "/run/rocegw/grpc.sock";
  std::string format = "table";
  int timeout_s = 10;
  bool all_counters = false;
};

int Fail(const CallResult& result) {
  std::cerr << "rocegwctl: " << result.text << "\n";
  return result.code;
}

// What `-o json` and `-o yaml` print; false for the formats that differ per command.
template <typename Messages>
bool PrintDocument(const Options& options, const Messages& messages) {
  if (options.format == "json") std::cout << JsonText(messages);
  if (options.format == "yaml") std::cout << YamlText(messages);
  return options.format == "json" || options.format == "yaml";
}

template <typename Rows>
void PrintNames(const Rows& rows) {
  for (const auto& row : rows) std::cout << row.name() << "\n";
}

int RunStatus(const Options& options, StateClient& client) {
  types::v1::GatewayStatus status;
  gateway::v1::ListSessionsResponse sessions;
  gateway::v1::ListQpsResponse qps;
  gateway::v1::ListMrsResponse mrs;
  gateway::v1::GetCountersResponse counters;
  if (auto result = client.GetStatus(status); !result.ok()) return Fail(result);
  const int code = status.ready() ? kOk : kConditionFalse;
  if (options.format == "name") {
    std::cout << status.name() << "\n";
    return code;
  }
  if (auto result = client.ListSessions(sessions); !result.ok()) return Fail(result);
  if (auto result = client.ListQps(qps); !result.ok()) return Fail(result);
  if (auto result = client.ListMrs(mrs); !result.ok()) return Fail(result);
  if (auto result = client.GetCounters(counters); !result.ok()) return Fail(result);
  const NamedMessages all = {{"gateway", &status},
                             {"sessions", &sessions},
                             {"qps", &qps},
                             {"mrs", &mrs},
                             {"counters", &counters}};
  if (PrintDocument(options, all)) return code;
  const bool wide = options.format == "wide";
  std::cout << StatusView(status, wide);
  if (sessions.sessions_size() > 0) {
    std::cout << "\n" << SessionsView(sessions, {wide, kStatusRows, "rocegwctl get sessions"});
  }
  if (qps.qps_size() > 0) {
    std::cout << "\n" << QpsView(qps, {wide, kStatusRows, "rocegwctl get qps"});
  }
  if (mrs.mrs_size() > 0) {
    std::cout << "\n" << MrsView(mrs, {wide, kStatusRows, "rocegwctl get mrs"});
  }
  std::cout << "\n" << CountersView(counters, wide, false);
  return code;
}

int RunGetSessions(const Options& options, StateClient& client) {
  gateway::v1::ListSessionsResponse list;
  if (auto result = client.ListSessions(list); !result.ok()) return Fail(result);
  if (options.format == "name") {
    PrintNames(list.sessions());
  } else if (!PrintDocument(options, list)) {
    std::cout << SessionsView(list, {options.format == "wide", 0, ""});
  }
  return kOk;
}

int RunGetQps(const Options& options, StateClient& client) {
  gateway::v1::ListQpsResponse list;
  if (auto result = client.ListQps(list); !result.ok()) return Fail(result);
  if (options.format == "name") {
    PrintNames(list.qps());
  } else if (!PrintDocument(options, list)) {
    std::cout << QpsView(list, {options.format == "wide", 0, ""});
  }
  return kOk;
}

int RunGetMrs(const Options& options, StateClient& client) {
  gateway::v1::ListMrsResponse list;
  if (auto result = client.ListMrs(list); !result.ok()) return Fail(result);
  if (options.format == "name") {
    PrintNames(list.mrs());
  } else if (!PrintDocument(options, list)) {
    std::cout << MrsView(list, {options.format == "wide", 0, ""});
  }
  return kOk;
}

int RunGetCounters(const Options& options, StateClient& client) {
  gateway::v1::GetCountersResponse counters;
  if (auto result = client.GetCounters(counters); !result.ok()) return Fail(result);
  if (options.format == "name") {
    PrintNames(counters.counters());
  } else if (!PrintDocument(options, counters)) {
    std::cout << CountersView(counters, options.format == "wide", options.all_counters);
  }
  return kOk;
}

int Main(int argc, char** argv) {
  Options options;
  int (*command)(const Options&, StateClient&) = nullptr;
  const auto choose = [&command](auto run) { return [&command, run] { command = run; }; };

  CLI::App app(
      "Shows what an RDMA gateway (rocegwd) on this host is doing.\n"
      "Exit status: 0 done, 1 failed, 2 wrong usage, 5 no right, 6 no gateway answers,\n"
      "7 no answer in time, 10 `status`: the gateway is not ready.");
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", "rocegwctl " + process::VersionText());
  app.add_option("--socket", options.socket, "the gateway's unix socket")
      ->envname("ROCEGW_GRPC_SOCKET")
      ->capture_default_str();
  app.add_option("-o,--output", options.format, "table, wide, json, yaml or name")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml", "name"}).description(""))
      ->type_name("FORMAT")
      ->capture_default_str();
  app.add_option("--timeout", options.timeout_s, "seconds to wait for each answer")
      ->check(CLI::Range(1, 60))
      ->capture_default_str();

  app.add_subcommand("status", "the gateway, its ports, what is attached, and its counters")
      ->callback(choose(RunStatus));
  CLI::App* get = app.add_subcommand("get", "one kind of object, all of them");
  get->require_subcommand(1);
  get->add_subcommand("sessions", "attached programs")->callback(choose(RunGetSessions));
  get->add_subcommand("qps", "queue pairs")->callback(choose(RunGetQps));
  get->add_subcommand("mrs", "registered memory regions")->callback(choose(RunGetMrs));
  CLI::App* counters = get->add_subcommand("counters", "what happened since the start");
  counters->add_flag("--all", options.all_counters, "those that are zero as well");
  counters->callback(choose(RunGetCounters));

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  StateClient client(options.socket, std::chrono::seconds(options.timeout_s));
  if (auto result = client.Connect(); !result.ok()) return Fail(result);
  return command(options, client);
}

}  // namespace
}  // namespace rocegw::cli

int main(int argc, char** argv) {
  try {
    return rocegw::cli::Main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "rocegwctl: " << error.what() << "\n";
    return rocegw::cli::kFailed;
  }
}
