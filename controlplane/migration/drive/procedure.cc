// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/drive/procedure.h"

#include <algorithm>
#include <array>

namespace rocegw::migration {
namespace {

// The new path carries no I/O before kSwitch, the old one stays until kRemoveOld.
constexpr auto kPaths =
    std::to_array<StepRule>({{Step::kHealth, NodeState::kPending, NodeState::kPending},
                             {Step::kBackup, NodeState::kPending, NodeState::kPending},
                             {Step::kOkToStop, NodeState::kReady, NodeState::kReady},
                             {Step::kAddPath, NodeState::kReady, NodeState::kReady},
                             {Step::kVerifyPath, NodeState::kPathAdded, NodeState::kPathAdded},
                             {Step::kSwitch, NodeState::kPathVerified, NodeState::kPathVerified},
                             {Step::kDrain, NodeState::kPreferred, NodeState::kPreferred},
                             {Step::kVerify, NodeState::kOldDrained, NodeState::kOldDrained}});

constexpr auto kRestart =
    std::to_array<StepRule>({{Step::kHealth, NodeState::kPending, NodeState::kPending},
                             {Step::kBackup, NodeState::kPending, NodeState::kPending},
                             {Step::kOkToStop, NodeState::kReady, NodeState::kReady},
                             {Step::kCordon, NodeState::kReady, NodeState::kReady},
                             {Step::kDrain, NodeState::kCordoned, NodeState::kDraining},
                             {Step::kStop, NodeState::kDraining, NodeState::kDraining},
                             {Step::kSwitch, NodeState::kStopped, NodeState::kStopped},
                             {Step::kStart, NodeState::kSwitched, NodeState::kSwitched},
                             {Step::kRejoin, NodeState::kStarted, NodeState::kStarted},
                             {Step::kVerify, NodeState::kRejoined, NodeState::kVerifying},
                             {Step::kUncordon, NodeState::kVerifying, NodeState::kVerifying}});

constexpr size_t kHarmless = 3;

constexpr auto kUndoPath =
    std::to_array<Step>({Step::kRemoveNew, Step::kRestore, Step::kVerifyOld});
constexpr auto kUndoPreferred = std::to_array<Step>(
    {Step::kSwitchBack, Step::kDrainNew, Step::kRemoveNew, Step::kRestore, Step::kVerifyOld});

constexpr auto kUndoCordon = std::to_array<Step>({Step::kVerifyOld, Step::kUncordon});
constexpr auto kUndoStop =
    std::to_array<Step>({Step::kStart, Step::kRejoin, Step::kVerifyOld, Step::kUncordon});
constexpr auto kUndoSwitch = std::to_array<Step>(
    {Step::kRestore, Step::kStart, Step::kRejoin, Step::kVerifyOld, Step::kUncordon});
constexpr auto kUndoStart =
    std::to_array<Step>({Step::kDrain, Step::kStop, Step::kRestore, Step::kStart, Step::kRejoin,
                         Step::kVerifyOld, Step::kUncordon});
constexpr auto kUndoService =
    std::to_array<Step>({Step::kOkToStop, Step::kCordon, Step::kDrain, Step::kStop, Step::kRestore,
                         Step::kStart, Step::kRejoin, Step::kVerifyOld, Step::kUncordon});

bool Issued(std::span<const StepRule> rules, size_t issued, Step step) {
  const auto done = rules.first(std::min(issued, rules.size()));
  return std::ranges::find(done, step, &StepRule::step) != done.end();
}

}  // namespace

std::span<const StepRule> ForwardSteps(bool restarts) {
  if (restarts) return kRestart;
  return kPaths;
}

size_t HarmlessSteps() { return kHarmless; }

std::span<const Step> UndoSteps(bool restarts, size_t issued) {
  if (issued <= kHarmless) return {};
  const auto rules = ForwardSteps(restarts);
  if (!restarts) {
    if (Issued(rules, issued, Step::kSwitch)) return kUndoPreferred;
    return kUndoPath;
  }
  if (Issued(rules, issued, Step::kUncordon)) return kUndoService;
  if (Issued(rules, issued, Step::kStart)) return kUndoStart;
  if (Issued(rules, issued, Step::kSwitch)) return kUndoSwitch;
  if (Issued(rules, issued, Step::kStop)) return kUndoStop;
  return kUndoCordon;
}

}  // namespace rocegw::migration
