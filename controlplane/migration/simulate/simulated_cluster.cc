// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/simulate/simulated_cluster.h"

#include <algorithm>

#include "controlplane/migration/drive/procedure.h"

namespace rocegw::migration {
namespace {

constexpr uint64_t kInFlight = 8;

std::string ConfigOf(const PlannedNode& node, Transport transport) {
  return "config of " + node.name + " with " + std::string(WordOf(transport));
}

}  // namespace

SimulatedCluster::SimulatedCluster(const Plan& plan, std::vector<Failure> failures, uint64_t seed)
    : plan_(plan),
      failures_(std::move(failures)),
      facts_(plan.nodes.size()),
      books_(plan.nodes.size()),
      random_(seed * 2 + 1) {
  for (size_t i = 0; i < facts_.size(); ++i) {
    facts_[i].actual = plan.nodes[i].from;
    facts_[i].config_hash = ConfigOf(plan.nodes[i], plan.nodes[i].from);
    facts_[i].original_hash = facts_[i].config_hash;
    facts_[i].outstanding_old = kInFlight;
    facts_[i].gateway_version = plan.newest_version;
  }
}

uint64_t SimulatedCluster::Draw(uint64_t below) {
  random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
  return (random_ >> 33) % below;
}

Failure* SimulatedCluster::Matching(const CommandIntent& command) {
  for (Failure& failure : failures_) {
    if (failure.times != 0 && failure.node == command.node &&
        (!failure.step.has_value() || failure.step == command.step)) {
      --failure.times;
      return &failure;
    }
  }
  return nullptr;
}

Outcome SimulatedCluster::EvaluateGates(uint32_t wave) {
  for (Failure& failure : failures_) {
    if (failure.times == 0 || failure.wave != wave) continue;
    --failure.times;
    return failure.kind == FailureKind::kGate ? Outcome::kFailed : Outcome::kInconclusive;
  }
  return Outcome::kDone;
}

SimulatedCluster::Execution SimulatedCluster::Execute(const CommandIntent& command) {
  Execution execution;
  CommandBook& book = books_[command.node];
  const auto admission =
      fencing_ ? book.Admit(command.epoch, command.command) : CommandBook::Admission::kRun;
  if (admission == CommandBook::Admission::kRunning) return execution;
  if (admission == CommandBook::Admission::kKnown) {
    execution.result = *book.ResultOf(command.command);
    return execution;
  }
  if (admission == CommandBook::Admission::kStale) {
    execution.result = StepResult{.node = command.node, .command = command.command};
    execution.result->outcome = Outcome::kStaleEpoch;
    return execution;
  }
  execution.executed = true;
  execution.duration = 1 + static_cast<int64_t>(Draw(4));
  Failure* const failure = Matching(command);
  const auto fails = [&](FailureKind kind) { return failure != nullptr && failure->kind == kind; };
  NodeFacts& node = facts_[command.node];
  StepResult result{.node = command.node, .command = command.command};
  const auto answer = [&](Outcome outcome, const char* text) {
    result.outcome = outcome;
    result.text = text;
  };
  if (fails(FailureKind::kLost)) {
    execution.lost_for = failure->back_after;
    execution.executed = false;
    book.ForgetRunning();
    return execution;
  }
  if (fails(FailureKind::kFail)) {
    answer(Outcome::kFailed, "the tool failed");
  } else if (fails(FailureKind::kNever)) {
    ++failure->times;
    answer(Outcome::kNotYet, "the storage says no");
  } else if (fails(FailureKind::kGarbage)) {
    answer(Outcome::kUnparsable, "the answer is not understood");
  } else if (fails(FailureKind::kInconclusive)) {
    answer(Outcome::kInconclusive, "the answer decides nothing");
  } else {
    if (fails(FailureKind::kVersion)) node.gateway_version = "0.1.0";
    result = Apply(command);
    if (fails(FailureKind::kFallback)) {
      node.actual = Transport::kTcp;
      result.evidence.counted = Transport::kTcp;
    }
    if (fails(FailureKind::kConfig)) {
      node.config_hash = "another configuration";
      result.evidence.config_hash = node.config_hash;
    }
    if (fails(FailureKind::kData)) {
      node.journal_intact = false;
      result.evidence.journal_intact = false;
    }
  }
  book.Finish(result);
  execution.drifts = fails(FailureKind::kDrift);
  execution.controller_killed = fails(FailureKind::kController);
  // An agent that was killed answers when it is asked again, from its disk.
  const bool silent = fails(FailureKind::kHang) || fails(FailureKind::kController);
  if (fails(FailureKind::kAgent)) execution.duration += 5;
  if (!silent) execution.result = result;
  return execution;
}

// The evidence is what an honest adapter reports.
StepResult SimulatedCluster::Apply(const CommandIntent& command) {
  NodeFacts& node = facts_[command.node];
  const PlannedNode& planned = plan_.nodes[command.node];
  switch (command.step) {
    case Step::kAddPath:
      node.new_path = true;
      break;
    case Step::kVerifyPath:
      node.new_verified = true;
      break;
    case Step::kSwitch:
      node.config_hash = ConfigOf(planned, plan_.target);
      if (!plan_.restarts) {
        node.prefers_new = true;
        node.actual = plan_.target;
        node.outstanding_new = kInFlight;
      }
      break;
    case Step::kDrain:
      node.outstanding_old = 0;
      if (plan_.restarts) node.outstanding_new = 0;
      break;
    case Step::kCordon:
      node.cordoned = true;
      break;
    case Step::kStop:
      node.runs = false;
      node.outstanding_old = node.outstanding_new = 0;
      break;
    case Step::kStart:
      node.runs = true;
      node.prefers_new = node.config_hash == ConfigOf(planned, plan_.target);
      node.actual = node.prefers_new ? plan_.target : planned.from;
      node.new_path = node.prefers_new;
      node.new_verified = false;
      break;
    case Step::kVerify:
      node.new_verified = node.new_path;
      break;
    case Step::kUncordon:
      node.cordoned = false;
      (node.prefers_new ? node.outstanding_new : node.outstanding_old) = kInFlight;
      break;
    case Step::kSwitchBack:
      node.prefers_new = false;
      node.actual = planned.from;
      node.outstanding_old = kInFlight;
      break;
    case Step::kDrainNew:
      node.outstanding_new = 0;
      break;
    case Step::kRemoveNew:
      node.new_path = node.new_verified = false;
      break;
    case Step::kRestore:
      node.config_hash = node.original_hash;
      break;
    case Step::kRemoveOld:
      if (node.clients_on_old == 0) node.old_path = false;
      break;
    default:
      break;
  }
  StepResult result{.node = command.node, .command = command.command};
  Evidence& evidence = result.evidence;
  evidence.outstanding = command.step == Step::kDrainNew ? node.outstanding_new
                         : plan_.restarts ? node.outstanding_old + node.outstanding_new
                                          : node.outstanding_old;
  evidence.config_hash = node.config_hash;
  evidence.stated = node.prefers_new ? plan_.target : planned.from;
  evidence.counted = node.actual;
  evidence.journal_intact = node.journal_intact;
  evidence.clients_on_old = node.clients_on_old;
  evidence.gateway_version = node.gateway_version;
  return result;
}

}  // namespace rocegw::migration
