// SPDX-License-Identifier: Apache-2.0
// Failures that a simulation injects, as a person writes them: "node=3,step=switch,kind=lost".
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "controlplane/migration/model/names.h"
#include "controlplane/migration/plan/plan.h"

namespace rocegw::migration {

enum class FailureKind : uint8_t {
  kFail,          // the tool says that it failed
  kHang,          // the tool does not answer
  kNever,         // "not yet", for ever
  kGarbage,       // the tool's answer is not understood
  kInconclusive,  // the tool's answer decides nothing
  kLost,          // the node loses power; see back_after
  kFallback,      // the application falls back to TCP without a word
  kConfig,        // the node runs with another configuration than was written
  kData,          // the canary workload reads other data
  kVersion,       // the gateway has another version than planned
  kDrift,         // a person changes the cluster
  kController,    // the controller is killed; another one takes over
  kAgent,         // the agent is killed and started again
  kGate,          // a gate fails at the end of the wave
  kGateUnknown,   // a gate gives no answer at the end of the wave
};

struct Failure {
  FailureKind kind = FailureKind::kFail;
  std::optional<uint32_t> node;
  std::optional<uint32_t> wave;  // for gates
  std::optional<Step> step;      // not set: each
  uint32_t times = 1;            // number of matching commands that fail
  int64_t back_after = 0;        // seconds until a lost node is back; 0: never
};

// Reads a failure. Nodes are named, or numbered from 1 in the order of the plan.
Failure ReadFailure(std::string_view text, const Plan& plan, std::string& problem);

// Returns all kinds as "fail, hang, ...".
std::string FailureKinds();

}  // namespace rocegw::migration
