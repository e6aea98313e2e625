// SPDX-License-Identifier: Apache-2.0
// Verdicts of the agent: its rules, then its calls to a scripted gateway.
#include "agent/expose/attach_verdicts.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

namespace rocegw::agent {
namespace {

using gateway::v1::HeldAttach;
using gateway::v1::ListHeldAttachesResponse;

constexpr char kPool[] = "tenants/red/pools/train";

HeldAttach Attach(uint64_t id, uint32_t uid, const std::string& cgroup = "/user.slice",
                  const std::string& pool = kPool) {
  HeldAttach attach;
  attach.set_id(id);
  attach.set_uid(uid);
  attach.set_cgroup(cgroup);
  attach.set_pool(pool);
  return attach;
}

TEST(RuleVerdicts, NoRule_Denies) {
  const Verdict verdict = RuleVerdicts({}).Decide(Attach(1, 0));
  EXPECT_FALSE(verdict.allowed);
  EXPECT_NE(verdict.reason.find("no rule for this pool"), std::string::npos);
}

TEST(RuleVerdicts, UserAndCgroup_BothMustHold) {
  const RuleVerdicts rules({{kPool, {1000, 1001}, {"/system.slice/train.service"}}});
  EXPECT_TRUE(rules.Decide(Attach(1, 1001, "/system.slice/train.service")).allowed);
  EXPECT_TRUE(rules.Decide(Attach(1, 1000, "/system.slice/train.service/a/b")).allowed);
  EXPECT_FALSE(rules.Decide(Attach(1, 1002, "/system.slice/train.service")).allowed);
  EXPECT_FALSE(rules.Decide(Attach(1, 1000, "/system.slice/train.service2")).allowed);
  EXPECT_FALSE(rules.Decide(Attach(1, 1000, "")).allowed) << "in no cgroup that can be seen";
  EXPECT_FALSE(
      rules.Decide(Attach(1, 1000, "/system.slice/train.service", "tenants/red/pools/b")).allowed)
      << "another pool";
  EXPECT_NE(rules.Decide(Attach(1, 7, "/x")).reason.find("uid 7 in cgroup /x"), std::string::npos);
}

TEST(RuleVerdicts, SeveralRules_OneIsEnough) {
  const RuleVerdicts rules({{kPool, {1}, {}}, {kPool, {}, {"/"}}});
  EXPECT_TRUE(rules.Decide(Attach(1, 1, "")).allowed);
  EXPECT_TRUE(rules.Decide(Attach(1, 2, "/anything")).allowed);
  EXPECT_FALSE(rules.Decide(Attach(1, 2, "")).allowed);
}

class ScriptedGateway final : public GatewayPort {
 public:
  void Probe(std::function<void(StatusOr<GatewayProbe>)>) override {}
  void GetConfig(std::function<void(StatusOr<gateway::v1::GetConfigResponse>)>) override {}
  void Apply(const types::v1::Push&,
             std::function<void(StatusOr<types::v1::PushReport>)>) override {}
  void Ask(const fleet::v1::TunnelQuestion&,
           std::function<void(fleet::v1::TunnelAnswer)>) override {}
  void ListHeldAttaches(uint64_t after,
                        std::function<void(StatusOr<ListHeldAttachesResponse>)> done) override {
    asked.push_back(after);
    waiting = std::move(done);
  }
  void AnswerAttach(uint64_t id, bool allowed, const std::string& reason,
                    const gateway::v1::SlotLimits&) override {
    answers.push_back({id, allowed});
    reasons.push_back(reason);
  }
  void Tell(std::vector<HeldAttach> attaches) {
    ListHeldAttachesResponse response;
    for (const HeldAttach& attach : attaches) *response.add_attaches() = attach;
    std::exchange(waiting, {})(response);
  }

  std::function<void(StatusOr<ListHeldAttachesResponse>)> waiting;
  std::vector<uint64_t> asked;
  std::vector<std::pair<uint64_t, bool>> answers;
  std::vector<std::string> reasons;
};

class AttachVerdictsTest : public ::testing::Test {
 protected:
  AttachVerdictsTest() { EXPECT_TRUE(loop.Open().ok()); }
  using Answers = std::vector<std::pair<uint64_t, bool>>;

  ControlLoop loop;
  ScriptedGateway gateway;
  RuleVerdicts rules{{{kPool, {1000}, {}}}};
};

TEST_F(AttachVerdictsTest, EachIsAnsweredOnce) {
  const AttachVerdicts verdicts(loop, gateway, rules);
  EXPECT_EQ(gateway.asked, std::vector<uint64_t>{0});
  gateway.Tell({Attach(10, 1000), Attach(11, 7)});
  EXPECT_EQ(gateway.answers, (Answers{{10, true}, {11, false}}));
  EXPECT_NE(gateway.reasons[1], "");
  EXPECT_EQ(gateway.asked.back(), 11u);
  // The first attach still waits at the gateway, together with a new one.
  gateway.Tell({Attach(11, 7), Attach(12, 1000)});
  EXPECT_EQ(gateway.answers.size(), 3u);
  gateway.Tell({});
  EXPECT_EQ(gateway.asked.size(), 4u);
  EXPECT_EQ(verdicts.counters().allowed, 2u);
  EXPECT_EQ(verdicts.counters().denied, 1u);
}

// A gateway that starts anew after the clock was set back begins with smaller ids.
TEST_F(AttachVerdictsTest, AnotherGatewayWithSmallerIds_GetsVerdicts) {
  const AttachVerdicts verdicts(loop, gateway, rules);
  gateway.Tell({Attach(1000, 1000)});
  gateway.Tell({Attach(10, 1000), Attach(11, 7)});
  EXPECT_EQ(gateway.answers, (Answers{{1000, true}, {10, true}, {11, false}}));
  EXPECT_EQ(gateway.asked.back(), 11u);
  gateway.Tell({Attach(11, 7), Attach(12, 1000)});
  EXPECT_EQ(gateway.answers.size(), 4u) << "each once";
}

TEST_F(AttachVerdictsTest, GatewayAway_IsAskedAgain) {
  const AttachVerdicts verdicts(loop, gateway, rules, Milliseconds(1));
  std::exchange(gateway.waiting, {})(Status(EIO, "away"));
  EXPECT_EQ(gateway.asked.size(), 1u) << "not at once";
  while (gateway.asked.size() == 1) loop.RunOnce(Seconds(1));
  gateway.Tell({Attach(1, 1000)});
  EXPECT_EQ(gateway.answers, (Answers{{1, true}}));
}

TEST_F(AttachVerdictsTest, GoneBeforeTheAnswer_NothingHappens) {
  auto verdicts = std::make_unique<AttachVerdicts>(loop, gateway, rules);
  verdicts.reset();
  gateway.Tell({Attach(1, 1000)});
  EXPECT_TRUE(gateway.answers.empty());
}

}  // namespace
}  // namespace rocegw::agent
