// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/adapter_process/adapter.h"

#include "controlplane/migration/adapter/redact.h"
#include "controlplane/migration/adapter_process/program_run.h"
#include "controlplane/migration/model/json_fields.h"
#include "gateway/base/foreign_text.h"

namespace rocegw::migration {
namespace {

constexpr char kQueryId[] = "query";
constexpr int64_t kHelloSeconds = 10;
constexpr int64_t kInventorySeconds = 120;
constexpr size_t kLongestLine = 400;

// Last line of what a program wrote to its standard error.
std::string LastLine(const std::string& text) {
  const size_t end = text.find_last_not_of("\n ");
  if (end == std::string::npos) return {};
  const size_t before = text.rfind('\n', end);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  return ForeignText(Redacted(text.substr(begin, end - begin + 1)).substr(0, kLongestLine));
}

}  // namespace

std::string Adapter::Ask(const AdapterRequest& request, size_t most, bool& timed_out,
                         std::string& problem) const {
  problem.clear();
  ProgramLimits limits;
  limits.deadline = std::chrono::seconds(request.deadline_seconds);
  limits.most_output = most;
  limits.stop_fd = stop_fd_;
  const ProgramRun run = RunProgram(words_, RequestLine(request) + "\n", limits);
  timed_out = run.timed_out;
  if (!run.problem.empty()) {
    problem = run.problem;
  } else if (run.stopped) {
    problem = "stopped with the caller";
  } else if (run.timed_out) {
    problem = "no answer within " + std::to_string(request.deadline_seconds) + " s";
  } else if (run.too_much) {
    problem = "more than " + std::to_string(most) + " bytes of output";
  } else if (run.exit_status != 0) {
    problem = run.exit_status < 0 ? "the adapter was killed"
                                  : "exit status " + std::to_string(run.exit_status);
  }
  std::string_view line;
  if (problem.empty()) line = OnlyLine(run.output, problem);
  if (const std::string error = LastLine(run.last_error); !problem.empty() && !error.empty())
    problem += " (" + error + ")";
  return std::string(line);
}

AdapterHello Adapter::Hello(const std::string& cluster, std::string& problem) const {
  AdapterRequest request{.call = "hello", .id = kQueryId, .cluster = cluster};
  request.deadline_seconds = kHelloSeconds;
  bool timed_out = false;
  const std::string line = Ask(request, kMostAnswerBytes, timed_out, problem);
  return problem.empty() ? ReadHello(line, kQueryId, problem) : AdapterHello();
}

Inventory Adapter::ReadInventory(const std::string& cluster, std::string& problem) const {
  AdapterRequest request{.call = "inventory", .id = kQueryId, .cluster = cluster};
  request.deadline_seconds = kInventorySeconds;
  bool timed_out = false;
  const std::string line = Ask(request, kMostInventoryBytes, timed_out, problem);
  if (!problem.empty()) return {};
  return migration::ReadInventory(line, problem);
}

AdapterAnswer Adapter::Call(const AdapterRequest& request) const {
  bool timed_out = false;
  std::string problem;
  const std::string line = Ask(request, kMostAnswerBytes, timed_out, problem);
  if (problem.empty()) return ReadAnswer(line, request.id);
  return {.outcome = timed_out ? Outcome::kTimedOut : Outcome::kUnparsable, .text = problem};
}

}  // namespace rocegw::migration
