// SPDX-License-Identifier: Apache-2.0
#include "agent/migration/adapter_calls.h"

#include <google/protobuf/util/time_util.h>
#include <grpcpp/support/status.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/migration/trusted_program.h"
#include "controlplane/migration/adapter_process/adapter.h"
#include "proto/rules/resource_name.h"

namespace rocegw::agent {
namespace {

using fleet::v1::MigrationCall;
using fleet::v1::MigrationReport;
using fleet::v1::TunnelAnswer;
using google::protobuf::util::TimeUtil;
using migration::Adapter;
using migration::AdapterAnswer;
using migration::CommandBook;
using migration::Evidence;
using migration::Outcome;
using migration::StepResult;
using migration::Transport;

constexpr std::string_view kMigrations = "migrations/";
constexpr int64_t kLongestCall = 86'400;

TunnelAnswer Failure(grpc::StatusCode code, const std::string& message) {
  TunnelAnswer answer;
  answer.set_code(code);
  answer.set_message(message);
  return answer;
}

MigrationReport ReportOf(Outcome outcome, const std::string& text, const Evidence& evidence = {}) {
  MigrationReport report;
  report.set_outcome(std::string(WordOf(outcome)));
  report.set_text(text);
  if (evidence.outstanding.has_value()) report.set_outstanding(*evidence.outstanding);
  report.set_config_hash(evidence.config_hash);
  if (evidence.stated.has_value()) report.set_stated(std::string(WordOf(*evidence.stated)));
  if (evidence.counted.has_value()) report.set_counted(std::string(WordOf(*evidence.counted)));
  if (evidence.journal_intact.has_value()) report.set_journal_intact(*evidence.journal_intact);
  if (evidence.clients_on_old.has_value()) report.set_clients_on_old(*evidence.clients_on_old);
  report.set_gateway_version(evidence.gateway_version);
  report.set_output_digest(evidence.output_digest);
  return report;
}

TunnelAnswer AnswerOf(const MigrationReport& report) {
  TunnelAnswer answer;
  *answer.mutable_migration_report() = report;
  return answer;
}

std::string IdOf(const MigrationCall& call) { return call.migration().substr(kMigrations.size()); }

// Returns the result as the book keeps it: the report's own fields.
StepResult ResultOf(const MigrationCall& call, const MigrationReport& report) {
  StepResult result{.command = call.command(), .text = report.text()};
  result.outcome = migration::FromWord<Outcome>(report.outcome()).value_or(Outcome::kUnparsable);
  Evidence& evidence = result.evidence;
  if (report.has_outstanding()) evidence.outstanding = report.outstanding();
  evidence.config_hash = report.config_hash();
  evidence.stated = migration::FromWord<Transport>(report.stated());
  evidence.counted = migration::FromWord<Transport>(report.counted());
  if (report.has_journal_intact()) evidence.journal_intact = report.journal_intact();
  if (report.has_clients_on_old()) evidence.clients_on_old = report.clients_on_old();
  evidence.gateway_version = report.gateway_version();
  evidence.output_digest = report.output_digest();
  return result;
}

MigrationReport Hello(const Adapter& adapter, const MigrationCall& call) {
  std::string problem;
  const migration::AdapterHello hello = adapter.Hello(call.cluster(), problem);
  if (!problem.empty()) return ReportOf(Outcome::kFailed, problem);
  MigrationReport report = ReportOf(Outcome::kDone, hello.name + " " + hello.version);
  for (const std::string& name : hello.calls) report.add_calls(name);
  return report;
}

MigrationReport Inventory(const Adapter& adapter, const MigrationCall& call) {
  std::string problem;
  const migration::Inventory inventory = adapter.ReadInventory(call.cluster(), problem);
  if (!problem.empty()) return ReportOf(Outcome::kFailed, problem);
  MigrationReport report = ReportOf(Outcome::kDone, {});
  report.set_inventory_hash(HashOf(inventory));
  return report;
}

// Runs the adapter. Blocks; a thread of its own.
MigrationReport RunCall(const Adapter& adapter, const MigrationCall& call) {
  if (call.call() == "hello") return Hello(adapter, call);
  if (call.call() == "inventory") return Inventory(adapter, call);
  migration::AdapterRequest request{.call = call.call(),
                                    .id = std::to_string(call.command()),
                                    .cluster = call.cluster(),
                                    .node = call.node()};
  request.question = call.command() == 0;
  request.from = *migration::FromWord<Transport>(call.from());
  request.to = *migration::FromWord<Transport>(call.to());
  request.deadline_seconds =
      std::clamp<int64_t>(TimeUtil::DurationToSeconds(call.time_limit()), 1, kLongestCall);
  const AdapterAnswer answer = adapter.Call(request);
  return ReportOf(answer.outcome, answer.text, answer.evidence);
}

bool IsVerification(const MigrationCall& call) {
  return call.call() == "verify" || call.call() == "verify-old";
}

// Returns why the call is not served; empty: it is.
std::string ProblemOf(const MigrationCall& call) {
  const std::string& name = call.migration();
  if (!name.starts_with(kMigrations) || !rules::IsDnsLabel(name.substr(kMigrations.size())))
    return "this is no name of a migration";
  const bool query = call.call() == "hello" || call.call() == "inventory";
  if (!query && !migration::FromWord<migration::Step>(call.call()).has_value())
    return "there is no call of this name";
  if (!migration::FromWord<Transport>(call.from()).has_value() ||
      !migration::FromWord<Transport>(call.to()).has_value())
    return "this is no transport";
  if (call.command() == 0 && !query && call.call() != "health" && !IsVerification(call))
    return "a call that changes something needs a command's number";
  return {};
}

}  // namespace

AdapterCalls::AdapterCalls(ControlLoop& loop, Options options)
    : loop_(loop),
      options_(std::move(options)),
      books_(options_.state_dir + "/migrations"),
      stop_(eventfd(0, EFD_CLOEXEC)) {}

AdapterCalls::~AdapterCalls() {
  *alive_ = false;
  const uint64_t one = 1;
  if (write(stop_.get(), &one, sizeof one) < 0)
    spdlog::warn("adapters of migrations are not stopped before their deadline");
  for (Running& running : running_) running.thread.join();
}

void AdapterCalls::Start(const MigrationCall& call, Part part) {
  if (const std::string problem = ProblemOf(call); !problem.empty())
    return part(Failure(grpc::StatusCode::INVALID_ARGUMENT, problem));
  const auto program = TrustedProgram(options_.adapters_dir, call.adapter());
  if (!program.ok())
    return part(Failure(grpc::StatusCode::FAILED_PRECONDITION, program.status().text()));
  if (call.command() != 0 && AnswerByBook(call, part)) return;
  if (IsFull(call)) {
    return part(Failure(grpc::StatusCode::RESOURCE_EXHAUSTED,
                        std::to_string(running_.size()) + " adapters run here already"));
  }
  if (call.command() != 0) {
    auto book = books_.Open(IdOf(call), call.incarnation());
    if (!book.ok())
      return part(Failure(grpc::StatusCode::FAILED_PRECONDITION, book.status().text()));
    (void)(*book)->Admit(call.epoch(), call.command());
    // Before the command runs: a restarted agent must still refuse older commands.
    if (const Status saved = books_.Save(IdOf(call)); !saved.ok()) {
      (*book)->ForgetRunning();
      return part(Failure(grpc::StatusCode::UNAVAILABLE, saved.text()));
    }
  }
  Launch(call, program.value(), std::move(part));
}

bool AdapterCalls::IsFull(const MigrationCall& call) const {
  if (running_.size() >= kMost) return true;
  if (call.command() != 0) return false;
  size_t questions = 0;
  size_t verifications = 0;
  for (const Running& running : running_) {
    if (running.call.command() != 0) continue;
    ++questions;
    verifications += IsVerification(running.call) ? 1 : 0;
  }
  return questions >= kMostQuestions ||
         (IsVerification(call) && verifications >= kMostVerifications);
}

bool AdapterCalls::AnswerByBook(const MigrationCall& call, const Part& part) {
  auto opened = books_.Open(IdOf(call), call.incarnation());
  if (!opened.ok()) {
    part(Failure(grpc::StatusCode::FAILED_PRECONDITION, opened.status().text()));
    return true;
  }
  // A copy decides: the book itself changes only when the command runs.
  CommandBook book = **opened;
  const auto admission = book.Admit(call.epoch(), call.command());
  switch (admission) {
    case CommandBook::Admission::kRun:
      return false;
    case CommandBook::Admission::kKnown: {
      const StepResult& result = *book.ResultOf(call.command());
      part(AnswerOf(ReportOf(result.outcome, result.text, result.evidence)));
      return true;
    }
    case CommandBook::Admission::kRunning:
      for (Running& running : running_) {
        if (running.call.migration() == call.migration() &&
            running.call.command() == call.command())
          running.waiting.push_back(part);
      }
      // The newest controller is followed although the command goes on.
      (void)(*opened)->Admit(call.epoch(), call.command());
      return true;
    case CommandBook::Admission::kStale:
      break;
  }
  if (call.epoch() >= (*opened)->epoch() && book.running().has_value()) {
    part(Failure(grpc::StatusCode::UNAVAILABLE, "another command of the migration runs here"));
  } else {
    part(AnswerOf(ReportOf(Outcome::kStaleEpoch,
                           "this host follows epoch " + std::to_string((*opened)->epoch()))));
  }
  return true;
}

void AdapterCalls::Launch(const MigrationCall& call, const std::string& program, Part part) {
  spdlog::info("{}: adapter {} {} of {}", call.migration(), call.adapter(), call.call(),
               call.node());
  running_.push_back({.call = call, .waiting = {}, .thread = {}});
  const Place place = std::prev(running_.end());
  place->waiting.push_back(std::move(part));
  place->thread = std::thread([this, place, call, program, alive = alive_] {
    const MigrationReport report = RunCall(Adapter({program}, stop_.get()), call);
    (void)loop_.Post([this, place, report, alive] {
      if (*alive) OnReport(place, report);
    });
  });
}

void AdapterCalls::OnReport(Place place, const MigrationReport& report) {
  place->thread.join();
  const MigrationCall& call = place->call;
  if (report.outcome() != WordOf(Outcome::kDone))
    spdlog::info("{}: {}: {} {}", call.migration(), call.call(), report.outcome(), report.text());
  bool kept = true;
  if (call.command() != 0) {
    auto book = books_.Open(IdOf(call), call.incarnation());
    if (book.ok()) {
      (*book)->Finish(ResultOf(call, report));
      const Status saved = books_.Save(IdOf(call));
      if (!saved.ok()) spdlog::error("{}", saved.text());
      kept = saved.ok();
    }
  }
  const std::vector<Part> waiting = std::move(place->waiting);
  const TunnelAnswer answer =
      kept ? AnswerOf(report) : Failure(grpc::StatusCode::UNAVAILABLE, "the disk is not writable");
  running_.erase(place);
  for (const Part& part : waiting) part(answer);
}

}  // namespace rocegw::agent
