// SPDX-License-Identifier: Apache-2.0
// Transport that a node uses according to its state, and what an answer to a question about it
// means. Questions are asked beside the steps of a migration and change nothing. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "controlplane/migration/drive/events.h"
#include "controlplane/migration/plan/plan.h"

namespace rocegw::migration {

struct Claim {
  Transport transport = Transport::kTcp;
  Step question = Step::kVerify;  // call of the adapter that finds out
};

// Returns nullopt for a node whose state stands for no transport: the node is unchanged, on its
// way, or in a person's hands.
std::optional<Claim> ClaimOf(const Plan& plan, uint32_t node, const NodeRecord& record);

enum class Verdict : uint8_t {
  kVerified,
  kFellBack,  // a witness names another transport than the claim
  kFailed,    // the configuration, the data or the tool says no
  kUnknown,   // no answer, or one that decides nothing
  kNoClaim,   // not asked
};
std::string_view WordOf(Verdict verdict);

struct Verification {
  Verdict verdict = Verdict::kUnknown;
  std::string reason;  // a line for people, unless verified
};

// Judges the answer to a question about a node that claims a transport.
Verification JudgeClaim(const Plan& plan, uint32_t node, const NodeRecord& record,
                        const StepResult& result);

}  // namespace rocegw::migration
