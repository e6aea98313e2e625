// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/drive/claim.h"

#include <array>

#include "controlplane/migration/drive/evidence.h"

namespace rocegw::migration {
namespace {

constexpr auto kVerdicts =
    std::to_array<std::string_view>({"verified", "fell-back", "failed", "unknown", "no-claim"});

bool NamesAnother(const std::optional<Transport>& witness, Transport claimed) {
  return witness.has_value() && *witness != claimed;
}

}  // namespace

std::string_view WordOf(Verdict verdict) { return kVerdicts[static_cast<size_t>(verdict)]; }

std::optional<Claim> ClaimOf(const Plan& plan, uint32_t node, const NodeRecord& record) {
  switch (record.state) {
    case NodeState::kSoaking:
    case NodeState::kDone:
    case NodeState::kOldRemoved:
      return Claim{plan.target, Step::kVerify};
    case NodeState::kRolledBack:
      return Claim{plan.nodes[node].from, Step::kVerifyOld};
    default:
      return std::nullopt;
  }
}

Verification JudgeClaim(const Plan& plan, uint32_t node, const NodeRecord& record,
                        const StepResult& result) {
  const std::optional<Claim> claim = ClaimOf(plan, node, record);
  if (!claim.has_value()) return {Verdict::kNoClaim, "its state stands for no transport"};
  NodeRecord judged = record;
  // Another version of the gateway is no matter of the transport.
  judged.activity = Activity::kNone;
  // The removal of the old path changes what an adapter takes for the node's configuration.
  if (record.state == NodeState::kOldRemoved) judged.switched_hash = result.evidence.config_hash;
  const Judgement judgement = Judge(plan, node, judged, claim->question, result);
  if (judgement.outcome == Outcome::kDone) return {Verdict::kVerified, {}};
  const bool another = NamesAnother(result.evidence.stated, claim->transport) ||
                       NamesAnother(result.evidence.counted, claim->transport);
  if (another) return {Verdict::kFellBack, judgement.reason};
  return {judgement.outcome == Outcome::kFailed ? Verdict::kFailed : Verdict::kUnknown,
          judgement.reason};
}

}  // namespace rocegw::migration
