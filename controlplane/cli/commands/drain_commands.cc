// SPDX-License-Identifier: Apache-2.0
// drain, undrain, operations.
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "controlplane/cli/commands/donor_commands.h"
#include "controlplane/cli/commands/local_drain_command.h"
#include "controlplane/cli/documents/quantity.h"
#include "controlplane/cli/printing.h"
#include "controlplane/cli/program.h"
#include "rocegw/admin/v1/gateways.pb.h"
#include "rocegw/admin/v1/operations.pb.h"

namespace rocegw::cli {
namespace {

using google::protobuf::util::TimeUtil;
using types::v1::Operation;

// A wait consists of many calls, so that progress can be shown.
constexpr std::chrono::milliseconds kOneWait(1000);
constexpr size_t kMostHolders = 5;

struct DrainQuery {
  std::string gateway;
  std::string donor;  // "GATEWAY/DONOR" behind the word donor
  std::string deadline;
  std::string on_deadline;
  bool wait = false;
  std::string operation;
};

// Returns "host-a: 2 sessions, 4 QPs, 1 request left" and the first sessions that hold it.
std::vector<std::string> HoldersOf(Program& program, const std::string& gateway) {
  MessagePtr object;
  if (!program.objects().Get(*FindKind("gateways"), gateway, object).ok()) return {};
  const auto& drain = static_cast<const types::v1::Gateway&>(*object).status().drain();
  return {drain.holders().begin(), drain.holders().end()};
}

CallResult WaitFor(Program& program, const std::string& name, Operation& operation) {
  const auto end = std::chrono::steady_clock::now() + program.patience();
  Progress line;
  admin::v1::WaitOperationRequest request;
  request.set_name(name);
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    operation.Clear();
    CallResult result =
        program.rpc().Call("/rocegw.admin.v1.Operations/WaitOperation", request, operation,
                           std::clamp(left, std::chrono::milliseconds(100), kOneWait));
    // The server's answer may cross with our deadline.
    if (!result.ok() && result.code != kDeadline) return result;
    if (operation.status().done()) return {};
    if (left <= kOneWait) {
      return {kDeadline,
              name + " is not done in time (--timeout)" +
                  (operation.status().step().empty() ? "" : ": " + operation.status().step()) +
                  "; it goes on: rocegwctl operations wait " + ShortName(name),
              {}};
    }
    line.Show(ShortName(operation.spec().target()) + ": " + operation.status().step());
  }
}

int TellEnd(Program& program, const CallResult& result, const Operation& operation) {
  if (!result.ok()) {
    const int code = Fail(result);
    if (result.code == kDeadline && !operation.spec().target().empty()) {
      const auto holders = HoldersOf(program, operation.spec().target());
      for (size_t i = 0; i < std::min(holders.size(), kMostHolders); ++i) {
        std::cerr << "  held by " << holders[i] << "\n";
      }
      if (holders.size() > kMostHolders) {
        std::cerr << "  and more: rocegwctl describe gateway "
                  << ShortName(operation.spec().target()) << "\n";
      }
    }
    return code;
  }
  const auto& status = operation.status();
  if (!status.error_reason().empty()) {
    return Fail({kFailed,
                 operation.name() + ": " + status.error_reason() + ": " + status.error_message(),
                 {}});
  }
  if (program.is_table()) {
    std::cout << operation.spec().target() << " drained\n";
  } else {
    std::vector<MessagePtr> one;
    one.push_back(std::make_unique<Operation>(operation));
    PrintObjects(program, *FindKind("operations"), one, true);
  }
  return kOk;
}

CallResult ReadDrain(const DrainQuery& query, admin::v1::DrainGatewayRequest& request) {
  if (!query.deadline.empty()) {
    const auto deadline = ParseDuration(query.deadline);
    if (!deadline.has_value()) {
      return {
          kUsage, "--deadline: '" + query.deadline + "' is not a duration (90s, 15m, 1h30m)", {}};
    }
    *request.mutable_deadline() = TimeUtil::MillisecondsToDuration(*deadline);
  }
  if (query.on_deadline == "keep") request.set_on_deadline(types::v1::KEEP);
  if (query.on_deadline == "disconnect") request.set_on_deadline(types::v1::DISCONNECT);
  if (query.on_deadline == "abort") request.set_on_deadline(types::v1::ABORT);
  if (!query.on_deadline.empty() && query.on_deadline != "keep" && query.deadline.empty()) {
    return {kUsage, "--on-deadline " + query.on_deadline + " needs a --deadline", {}};
  }
  std::string name;
  (void)FullName(*FindKind("gateways"), query.gateway, {}, name);
  request.set_name(name);
  return {};
}

int OrderLocally(Program& program, const DrainQuery& query, bool drain) {
  if (!query.gateway.empty() || !query.deadline.empty() || !query.on_deadline.empty()) {
    return Fail({kUsage,
                 "--local is the gateway of this host: without GATEWAY, and without a deadline, "
                 "which is the fleet's",
                 {}});
  }
  return OrderLocalDrain(program, {.drain = drain, .wait = query.wait, .goes_on = {}});
}

// Whether the words are "donor GATEWAY/DONOR". Another second word is an error.
CallResult ReadDonor(const DrainQuery& query) {
  if (query.donor.empty() || FindKind(query.gateway) == FindKind("donors")) return {};
  return {
      kUsage, "'" + query.donor + "' behind a gateway: drain GATEWAY, or donor GATEWAY/DONOR", {}};
}

int Drain(Program& program, const DrainQuery& query) {
  if (auto result = ReadDonor(query); !result.ok()) return Fail(result);
  if (!query.donor.empty()) {
    if (!query.deadline.empty() || !query.on_deadline.empty())
      return FailUsage("a donor waits for its sessions: --deadline is for gateways");
    return DrainDonor(program, query.donor, query.wait);
  }
  if (program.options.choice.local || !program.options.choice.gateway_socket.empty())
    return OrderLocally(program, query, true);
  if (query.gateway.empty())
    return Fail({kUsage, "which gateway? Its name, or --local for the one on this host", {}});
  admin::v1::DrainGatewayRequest request;
  if (auto result = ReadDrain(query, request); !result.ok()) return Fail(result);
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  Operation operation;
  if (auto result = program.objects().Write("/rocegw.admin.v1.Gateways/DrainGateway", request,
                                            program.options.write, operation);
      !result.ok()) {
    return Fail(result);
  }
  if (query.wait) {
    const std::string name = operation.name();
    const CallResult result = WaitFor(program, name, operation);
    return TellEnd(program, result, operation);
  }
  if (program.is_table()) {
    std::cout << request.name() << " draining: " << operation.name() << "\n";
    std::cerr << "wait for it: rocegwctl operations wait " << ShortName(operation.name()) << "\n";
    return kOk;
  }
  std::vector<MessagePtr> one;
  one.push_back(std::make_unique<Operation>(operation));
  PrintObjects(program, *FindKind("operations"), one, true);
  return kOk;
}

int Undrain(Program& program, const DrainQuery& query) {
  if (auto result = ReadDonor(query); !result.ok()) return Fail(result);
  if (!query.donor.empty()) return UndrainDonor(program, query.donor);
  if (program.options.choice.local || !program.options.choice.gateway_socket.empty())
    return OrderLocally(program, query, false);
  if (query.gateway.empty())
    return Fail({kUsage, "which gateway? Its name, or --local for the one on this host", {}});
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  admin::v1::UndrainGatewayRequest request;
  std::string name;
  (void)FullName(*FindKind("gateways"), query.gateway, {}, name);
  request.set_name(name);
  auto gateway = std::make_unique<types::v1::Gateway>();
  if (auto result = program.objects().Write("/rocegw.admin.v1.Gateways/UndrainGateway", request,
                                            program.options.write, *gateway);
      !result.ok()) {
    return Fail(result);
  }
  if (program.is_table()) {
    std::cout << name << " in service\n";
    return kOk;
  }
  std::vector<MessagePtr> one;
  one.push_back(std::move(gateway));
  PrintObjects(program, *FindKind("gateways"), one, true);
  return kOk;
}

int ListOperations(Program& program) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  ObjectList list;
  const Kind& kind = *FindKind("operations");
  if (auto result = program.objects().List(kind, {}, {}, list); !result.ok()) return Fail(result);
  PrintObjects(program, kind, list.objects, false);
  return kOk;
}

int WaitOperation(Program& program, const DrainQuery& query) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  std::string name;
  (void)FullName(*FindKind("operations"), query.operation, {}, name);
  Operation operation;
  const CallResult result = WaitFor(program, name, operation);
  return TellEnd(program, result, operation);
}

int CancelOperation(Program& program, const DrainQuery& query) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  admin::v1::CancelOperationRequest request;
  std::string name;
  (void)FullName(*FindKind("operations"), query.operation, {}, name);
  request.set_name(name);
  Operation operation;
  if (auto result = program.objects().Write("/rocegw.admin.v1.Operations/CancelOperation", request,
                                            program.options.write, operation);
      !result.ok()) {
    return Fail(result);
  }
  std::cout << name << (program.is_table() ? " cancelled\n" : "\n");
  return kOk;
}

}  // namespace

void AddDrainCommands(CLI::App& app, Program& program) {
  const auto query = std::make_shared<DrainQuery>();
  CLI::App* const drain = program.Add(
      app, "drain", "take a gateway or a donor of memory out of service",
      "  rocegwctl drain host-a --wait\n"
      "  rocegwctl drain host-a --deadline 15m --on-deadline disconnect\n"
      "  rocegwctl --local drain --wait     the gateway here, until it is started anew\n"
      "  rocegwctl drain donor host-a/donor --wait    sessions move their data away\n"
      "What is there goes on until it ends by itself or the deadline comes: then it\n"
      "stays (keep), connections end in order (disconnect), or sessions end (abort).",
      [&program, query] { return Drain(program, *query); });
  drain->add_option("GATEWAY", query->gateway, "its name; with --local: none; or the word donor");
  drain->add_option("DONOR", query->donor, "GATEWAY/DONOR, behind the word donor");
  drain->add_option("--deadline", query->deadline, "when it is not empty by then: --on-deadline")
      ->type_name("TIME");
  drain->add_option("--on-deadline", query->on_deadline, "keep, disconnect or abort")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"keep", "disconnect", "abort"}).description(""));
  drain->add_flag("--wait", query->wait, "until it is empty, at most --timeout");

  CLI::App* const undrain =
      program.Add(app, "undrain", "take a gateway or a donor back into service",
                  "  rocegwctl undrain host-a\n  rocegwctl --local undrain\n"
                  "  rocegwctl undrain donor host-a/donor",
                  [&program, query] { return Undrain(program, *query); });
  undrain->add_option("GATEWAY", query->gateway, "its name; with --local: none; or the word donor");
  undrain->add_option("DONOR", query->donor, "GATEWAY/DONOR, behind the word donor");

  CLI::App* const operations =
      program.Add(app, "operations", "what takes longer than a call: list, wait, cancel",
                  "  rocegwctl operations list\n"
                  "  rocegwctl operations wait drain-host-a-1f2e3d4c --timeout 10m",
                  nullptr);
  program.Add(*operations, "list", "all that run, and those that ended lately", "",
              [&program] { return ListOperations(program); });
  CLI::App* const wait = program.Add(*operations, "wait", "until it is done, at most --timeout", "",
                                     [&program, query] { return WaitOperation(program, *query); });
  wait->add_option("OPERATION", query->operation, "its name")->required();
  CLI::App* const cancel =
      program.Add(*operations, "cancel", "end it: a drained gateway is in service again", "",
                  [&program, query] { return CancelOperation(program, *query); });
  cancel->add_option("OPERATION", query->operation, "its name")->required();
}

}  // namespace rocegw::cli
