// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/drive/wave_runs.h"

#include <algorithm>

#include "controlplane/migration/drive/availability.h"
#include "controlplane/migration/drive/orders.h"

namespace rocegw::migration {
namespace {

using S = MigrationState;

// A round of gates without result is inconclusive.
constexpr int64_t kGatePatience = 120;

}  // namespace

void WaveRuns::Pause(PauseReason why, const std::string& text) {
  const bool forward = record_.state == S::kRunning;
  writer_.Pause(why, text);
  const WaveState wave = record_.waves[record_.wave].state;
  if (forward && wave != WaveState::kWaiting && wave != WaveState::kVerified)
    writer_.SetWave(record_.wave, WaveState::kHeld);
}

void WaveRuns::OnGates(const GateResult& result) {
  if (!record_.gate_pending || result.round != record_.gate_round) return;
  record_.gate_pending = false;
  if (record_.state != S::kRunning) return;
  if (result.outcome == Outcome::kDone) {
    FinishWave();
  } else if (result.outcome == Outcome::kFailed) {
    Pause(PauseReason::kGate, result.text);
  } else {
    Pause(PauseReason::kInconclusive, result.text);
  }
}

bool WaveRuns::Proceed() {
  if (!record_.inventory_matches) {
    Pause(PauseReason::kDrift, "the inventory is not the planned one");
    return true;
  }
  if (!WindowIsOpen(record_.knobs, record_.now)) {
    Pause(PauseReason::kWindowClosed, "outside of the change window");
    return true;
  }
  WaveRecord& wave = record_.waves[record_.wave];
  const std::string& name = plan_.waves[record_.wave].name;
  if (wave.state == WaveState::kWaiting) {
    if (!wave.approved && !record_.knobs.automatic_approval) {
      writer_.SetMigration(S::kAwaitingApproval, "wave " + name);
      return true;
    }
    wave.approved = true;
  }
  if (wave.state == WaveState::kWaiting || wave.state == WaveState::kHeld) {
    writer_.SetWave(record_.wave, name == "canary" ? WaveState::kCanary : WaveState::kRunning);
    return true;
  }
  return wave.state == WaveState::kSoaking ? Soak() : RunWave();
}

bool WaveRuns::StartNodes(const Wave& wave) {
  bool started = false;
  Availability availability(plan_, record_);
  for (const uint32_t i : wave.nodes) {
    const NodeRecord& node = record_.nodes[i];
    if (node.state != NodeState::kPending || node.activity != Activity::kNone || !node.reachable ||
        !availability.MayTake(i))
      continue;
    availability.Take(i);
    runs_.Start(i, Activity::kForward);
    started = true;
  }
  return started;
}

// A node that is lost before it started is told of while others are in hand: those of a flag day
// wait for it.
bool WaveRuns::QuarantineLost(const Wave& wave) {
  std::string lost;
  for (const uint32_t i : wave.nodes) {
    const NodeRecord& node = record_.nodes[i];
    if (node.state != NodeState::kPending || node.activity != Activity::kNone || node.reachable ||
        record_.now < node.lost_since + record_.knobs.lost_after)
      continue;
    writer_.SetNode(i, NodeState::kQuarantined, "lost in PENDING");
    if (lost.empty()) lost = plan_.nodes[i].name + ": lost in PENDING";
  }
  if (!lost.empty()) Pause(PauseReason::kLostNode, lost);
  return !lost.empty();
}

bool WaveRuns::RunWave() {
  const Wave& wave = plan_.waves[record_.wave];
  if (StartNodes(wave) || QuarantineLost(wave)) return true;
  if (std::ranges::any_of(record_.nodes, IsInHand)) return false;
  size_t pending = 0;
  size_t undecided = 0;
  std::string first;
  for (const uint32_t i : wave.nodes) {
    const NodeRecord& node = record_.nodes[i];
    if (node.state == NodeState::kSoaking || node.state == NodeState::kDone ||
        node.state == NodeState::kSkipped)
      continue;
    if (node.state == NodeState::kPending) {
      // The node may come back within `lost_after`.
      if (!node.reachable) return false;
      ++pending;
      continue;
    }
    ++undecided;
    if (first.empty())
      first = plan_.nodes[i].name + " is " + std::string(WordOf(record_.nodes[i].state));
  }
  if (undecided != 0) {
    Pause(PauseReason::kNodeFailed, std::to_string(undecided) + " nodes need a person: " + first);
    return true;
  }
  if (pending != 0) {
    Pause(PauseReason::kNodeFailed, "no node may start: too many are out of service");
    return true;
  }
  writer_.SetWave(record_.wave, WaveState::kSoaking);
  return true;
}

bool WaveRuns::Soak() {
  if (record_.gate_pending) {
    if (record_.now < record_.gate_deadline) return false;
    record_.gate_pending = false;
    Pause(PauseReason::kInconclusive, "the gates were not evaluated in time");
    return true;
  }
  if (record_.now < record_.waves[record_.wave].since + record_.knobs.soak) return false;
  record_.gate_pending = true;
  record_.gate_deadline = record_.now + kGatePatience;
  writer_.Send(GateIntent{++record_.gate_round, record_.wave});
  return false;
}

void WaveRuns::FinishWave() {
  for (const uint32_t i : plan_.waves[record_.wave].nodes) {
    if (record_.nodes[i].state == NodeState::kSoaking) writer_.SetNode(i, NodeState::kDone);
  }
  writer_.SetWave(record_.wave, WaveState::kVerified);
  while (record_.wave + 1 < record_.waves.size() &&
         record_.waves[record_.wave].state == WaveState::kVerified)
    ++record_.wave;
  if (record_.waves[record_.wave].state != WaveState::kVerified) return;
  const size_t skipped = static_cast<size_t>(
      std::ranges::count(record_.nodes, NodeState::kSkipped, &NodeRecord::state));
  writer_.SetMigration(S::kCompleted, skipped == 0
                                          ? "every node has the new transport"
                                          : std::to_string(skipped) + " nodes were skipped");
}

}  // namespace rocegw::migration
