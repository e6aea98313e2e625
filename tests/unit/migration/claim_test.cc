// SPDX-License-Identifier: Apache-2.0
// Claims of nodes: which states stand for a transport, and what an answer about one means.
#include "controlplane/migration/drive/claim.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/support/migration/plans.h"

namespace rocegw::migration {
namespace {

using N = NodeState;

NodeRecord In(NodeState state) {
  NodeRecord record{.state = state};
  record.backup_hash = "old";
  record.switched_hash = "new";
  return record;
}

StepResult AnswerOf(Transport transport, const std::string& hash) {
  StepResult result;
  result.evidence.stated = transport;
  result.evidence.counted = transport;
  result.evidence.config_hash = hash;
  result.evidence.journal_intact = true;
  return result;
}

TEST(Claim, StatesOfNodesThatHaveChangedOrAreBackStandForATransport) {
  const Plan plan = TestPlan({});
  for (const N state : {N::kSoaking, N::kDone, N::kOldRemoved}) {
    const auto claim = ClaimOf(plan, 0, In(state));
    ASSERT_TRUE(claim.has_value()) << WordOf(state);
    EXPECT_EQ(claim->transport, Transport::kGateway);
    EXPECT_EQ(claim->question, Step::kVerify);
  }
  const auto back = ClaimOf(plan, 0, In(N::kRolledBack));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->transport, Transport::kTcp);
  EXPECT_EQ(back->question, Step::kVerifyOld);
  for (const N state : {N::kPending, N::kBlocked, N::kPreferred, N::kVerifying, N::kRollingBack,
                        N::kRollbackFailed, N::kQuarantined, N::kSkipped})
    EXPECT_FALSE(ClaimOf(plan, 0, In(state)).has_value()) << WordOf(state);
}

struct Row {
  const char* name;
  N state;
  std::function<void(StepResult&)> change;
  Verdict verdict;
  const char* reason;
};

TEST(Claim, AnAnswerIsJudgedByBothWitnesses) {
  const Plan plan = TestPlan({});
  const Row rows[] = {
      {"as claimed", N::kDone, [](StepResult&) {}, Verdict::kVerified, ""},
      {"the application says another transport", N::kDone,
       [](StepResult& r) { r.evidence.stated = Transport::kTcp; }, Verdict::kFellBack,
       "the application uses tcp, not gateway"},
      {"the bytes go another way", N::kSoaking,
       [](StepResult& r) { r.evidence.counted = Transport::kTcp; }, Verdict::kFellBack,
       "the application says gateway, but its bytes go over tcp"},
      {"one witness is silent, the other names another transport", N::kDone,
       [](StepResult& r) {
         r.evidence.stated.reset();
         r.evidence.counted = Transport::kTcp;
       },
       Verdict::kFellBack, "the adapter did not report which transport the application uses"},
      {"a witness is silent", N::kDone, [](StepResult& r) { r.evidence.counted.reset(); },
       Verdict::kUnknown, "the adapter did not report which transport the byte counters show"},
      {"another configuration", N::kDone, [](StepResult& r) { r.evidence.config_hash = "edited"; },
       Verdict::kFailed, "the configuration is not the switched one"},
      {"the configuration after the old path was removed", N::kOldRemoved,
       [](StepResult& r) { r.evidence.config_hash = "without the old path"; }, Verdict::kVerified,
       ""},
      {"broken data", N::kDone, [](StepResult& r) { r.evidence.journal_intact = false; },
       Verdict::kFailed, "the canary workload read other data than it wrote"},
      {"the tool says no", N::kDone,
       [](StepResult& r) { r = {.outcome = Outcome::kFailed, .text = "both paths"}; },
       Verdict::kFailed, "both paths"},
      {"the answer is not understood", N::kDone,
       [](StepResult& r) { r = {.outcome = Outcome::kUnparsable, .text = "what?"}; },
       Verdict::kUnknown, "what?"},
      {"no answer in time", N::kDone,
       [](StepResult& r) { r = {.outcome = Outcome::kTimedOut, .text = "too long"}; },
       Verdict::kUnknown, "too long"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    StepResult result = AnswerOf(Transport::kGateway, "new");
    row.change(result);
    const Verification verification = JudgeClaim(plan, 0, In(row.state), result);
    EXPECT_EQ(WordOf(verification.verdict), WordOf(row.verdict));
    EXPECT_EQ(verification.reason, row.reason);
  }
}

TEST(Claim, ANodeThatIsBackIsJudgedByItsOldTransport) {
  const Plan plan = TestPlan({});
  const NodeRecord back = In(N::kRolledBack);
  EXPECT_EQ(JudgeClaim(plan, 0, back, AnswerOf(Transport::kTcp, "old")).verdict,
            Verdict::kVerified);
  EXPECT_EQ(JudgeClaim(plan, 0, back, AnswerOf(Transport::kGateway, "old")).verdict,
            Verdict::kFellBack);
  EXPECT_EQ(JudgeClaim(plan, 0, back, AnswerOf(Transport::kTcp, "new")).verdict, Verdict::kFailed);
}

TEST(Claim, ANewerGatewayIsNoFallBack) {
  const Plan plan = TestPlan({});
  StepResult result = AnswerOf(Transport::kGateway, "new");
  result.evidence.gateway_version = "9.9.9";
  EXPECT_EQ(JudgeClaim(plan, 0, In(N::kDone), result).verdict, Verdict::kVerified);
}

TEST(Claim, ANodeWithoutAClaimIsNotJudged) {
  const Plan plan = TestPlan({});
  EXPECT_EQ(JudgeClaim(plan, 0, In(N::kPending), AnswerOf(Transport::kTcp, "old")).verdict,
            Verdict::kNoClaim);
}

}  // namespace
}  // namespace rocegw::migration
