// SPDX-License-Identifier: Apache-2.0
// The agent's core between a scripted controller and a scripted gateway.
#include "agent/reconcile/agent_core.h"

#include <gtest/gtest.h>

#include <optional>

#include "controlplane/model/objects_digest.h"
#include "tests/support/session/push_fixture.h"

namespace rocegw::agent {
namespace {

using rocegw::testing::Delta;
using rocegw::testing::FullPush;
using rocegw::testing::TenantObject;
using types::v1::Push;
using types::v1::PushReport;

class AgentCoreTest : public ::testing::Test, public AgentActions {
 protected:
  void Send(const fleet::v1::SyncRequest& message) override { sent_.push_back(message); }
  void Apply(const Push& push) override { applies_.push_back(push); }
  void Save(const DesiredConfig& config) override { saved_ = config.Saved(); }

  std::optional<PushReport> LastReport() const {
    for (auto at = sent_.rbegin(); at != sent_.rend(); ++at) {
      if (at->has_report()) return at->report();
    }
    return std::nullopt;
  }
  void GatewayRuns(const std::string& store, int64_t revision) {
    gateway::v1::GetConfigResponse config;
    config.set_source(store);
    config.set_applied_revision(revision);
    core_.OnGatewayUp(config);
  }
  // Answers the last push as the gateway.
  void Applied(types::v1::PushStatus status = types::v1::APPLIED,
               const std::string& rejected = {}) {
    ASSERT_FALSE(applies_.empty());
    PushReport report;
    report.set_status(status);
    report.set_store_uuid(applies_.back().store_uuid());
    report.set_applied_revision(applies_.back().revision());
    if (!rejected.empty()) report.add_rejections()->set_object(rejected);
    core_.OnApplied(report);
  }
  void Settle() {
    core_.OnStreamOpened(now_);
    GatewayRuns("static", 0);
    core_.OnPush(FullPush("a", 5, {TenantObject("t", 5)}));
    Applied();
    ASSERT_TRUE(core_.in_sync());
    core_.Tick(now_);
    sent_.clear();
    applies_.clear();
  }

  TimePoint now_{};
  AgentCore core_{"gateways/g", "1.0", *this};
  std::vector<fleet::v1::SyncRequest> sent_;
  std::vector<Push> applies_;
  std::optional<types::v1::AppliedConfig> saved_;
};

TEST_F(AgentCoreTest, Push_IsAppliedSavedAndAnswered) {
  core_.OnStreamOpened(now_);
  ASSERT_TRUE(sent_.at(0).has_hello());
  EXPECT_EQ(sent_[0].hello().gateway(), "gateways/g");
  EXPECT_TRUE(sent_.at(1).has_heartbeat());
  GatewayRuns("static", 0);
  EXPECT_TRUE(applies_.empty());
  core_.OnPush(FullPush("a", 5, {TenantObject("t", 5)}));
  ASSERT_EQ(applies_.size(), 1u);
  EXPECT_FALSE(LastReport().has_value()) << "not before the gateway has answered";
  EXPECT_FALSE(saved_.has_value());
  Applied();
  ASSERT_TRUE(LastReport().has_value());
  EXPECT_EQ(LastReport()->nonce(), "n5");
  EXPECT_EQ(LastReport()->status(), types::v1::APPLIED);
  EXPECT_FALSE(saved_.has_value()) << "not with every push";
  core_.Tick(now_);
  ASSERT_TRUE(saved_.has_value());
  EXPECT_EQ(saved_->revision(), 5);
}

TEST_F(AgentCoreTest, Rejections_ArePassedOn) {
  Settle();
  core_.OnPush(Delta("a", 5, 6, {TenantObject("t", 6)}));
  Applied(types::v1::APPLIED, "tenants/t");
  ASSERT_EQ(LastReport()->rejections_size(), 1);
  core_.OnStreamClosed();
  core_.OnStreamOpened(now_);
  EXPECT_EQ(sent_.at(sent_.size() - 2).hello().rejections_size(), 1);
}

TEST_F(AgentCoreTest, Delta_GoesToAGatewayThatRunsItsBase) {
  Settle();
  core_.OnPush(Delta("a", 5, 6, {TenantObject("t", 6)}));
  ASSERT_EQ(applies_.size(), 1u);
  EXPECT_FALSE(applies_[0].full());
  Applied();
  GatewayRuns("a", 6);
  core_.OnPush(Delta("a", 4, 8, {}));
  EXPECT_EQ(LastReport()->status(), types::v1::NEED_FULL);
  EXPECT_EQ(LastReport()->applied_revision(), 6);
  EXPECT_EQ(applies_.size(), 1u);
}

TEST_F(AgentCoreTest, DeltaInParts_ReachesTheGatewayWhole) {
  Settle();
  Push first = Delta("a", 5, 6, {TenantObject("u", 6)});
  first.set_more(true);
  core_.OnPush(first);
  EXPECT_TRUE(applies_.empty());
  core_.OnPush(Delta("a", 5, 6, {TenantObject("v", 6)}));
  ASSERT_EQ(applies_.size(), 1u);
  EXPECT_TRUE(applies_[0].full());
  EXPECT_EQ(applies_[0].objects_size(), 3);
  Applied();
  core_.OnPush(Delta("a", 6, 7, {TenantObject("v", 7)}));
  EXPECT_FALSE(applies_.at(1).full());
}

TEST_F(AgentCoreTest, GatewayThatRestarts_GetsTheWholeAgain_WithoutTheController) {
  Settle();
  core_.OnStreamClosed();
  core_.OnGatewayDown(now_);
  GatewayRuns("static", 0);
  ASSERT_EQ(applies_.size(), 1u);
  EXPECT_TRUE(applies_[0].full());
  EXPECT_EQ(applies_[0].revision(), 5);
  Applied();
  EXPECT_TRUE(core_.in_sync());
  EXPECT_TRUE(sent_.empty()) << "nobody is there to be told";
}

TEST_F(AgentCoreTest, GatewayThatKeptItsState_IsLeftAlone) {
  Settle();
  core_.OnGatewayDown(now_);
  GatewayRuns("a", 5);
  EXPECT_TRUE(applies_.empty());
}

TEST_F(AgentCoreTest, PushWhileTheGatewayIsAway_IsAnsweredWhenItIsBack) {
  Settle();
  core_.OnGatewayDown(now_);
  core_.OnPush(Delta("a", 5, 6, {TenantObject("t", 6)}));
  EXPECT_TRUE(applies_.empty());
  GatewayRuns("a", 5);
  ASSERT_EQ(applies_.size(), 1u);
  EXPECT_FALSE(applies_[0].full()) << "it still runs what the delta builds on";
  Applied();
  EXPECT_EQ(LastReport()->nonce(), "n6");
  core_.OnGatewayDown(now_);
  core_.OnPush(Delta("a", 6, 7, {TenantObject("t", 7)}));
  GatewayRuns("static", 0);
  ASSERT_EQ(applies_.size(), 2u);
  EXPECT_TRUE(applies_[1].full());
}

TEST_F(AgentCoreTest, GatewayThatNeedsMore_GetsTheWhole) {
  Settle();
  core_.OnPush(Delta("a", 5, 6, {TenantObject("t", 6)}));
  Applied(types::v1::NEED_FULL);
  ASSERT_EQ(applies_.size(), 2u);
  EXPECT_TRUE(applies_[1].full());
  Applied(types::v1::NEED_FULL);
  EXPECT_EQ(applies_.size(), 2u) << "one that takes nothing is not asked for ever";
  GatewayRuns("static", 0);
  EXPECT_EQ(applies_.size(), 3u);
  Applied();
  EXPECT_EQ(LastReport()->nonce(), "n6");
}

TEST_F(AgentCoreTest, AnotherStore_ChangesNothingAndSaysSo) {
  Settle();
  core_.OnPush(FullPush("b", 9, {}));
  EXPECT_TRUE(applies_.empty());
  EXPECT_EQ(LastReport()->status(), types::v1::UNADOPTED);
  EXPECT_EQ(LastReport()->store_uuid(), "a");
  EXPECT_EQ(LastReport()->applied_revision(), 5);
  EXPECT_TRUE(core_.unadopted());
  Push adopting = FullPush("b", 9, {});
  adopting.set_adopt(true);
  core_.OnPush(adopting);
  EXPECT_FALSE(core_.unadopted());
  ASSERT_EQ(applies_.size(), 1u);
  EXPECT_TRUE(applies_[0].adopt());
}

TEST_F(AgentCoreTest, AgentWithoutMemory_DoesNotOverruleTheGatewaysStore) {
  core_.OnStreamOpened(now_);
  GatewayRuns("a", 5);
  core_.OnPush(FullPush("b", 9, {}));
  ASSERT_EQ(applies_.size(), 1u);
  EXPECT_FALSE(applies_[0].adopt());
  PushReport report;
  report.set_status(types::v1::UNADOPTED);
  report.set_store_uuid("a");
  report.set_applied_revision(5);
  core_.OnApplied(report);
  EXPECT_EQ(LastReport()->status(), types::v1::UNADOPTED);
  EXPECT_EQ(LastReport()->store_uuid(), "a");
  EXPECT_FALSE(saved_.has_value());
  GatewayRuns("a", 5);
  EXPECT_EQ(applies_.size(), 1u) << "it is not tried again without being told";
}

TEST_F(AgentCoreTest, StreamThatEndsWhileApplying_OwesNothing) {
  Settle();
  core_.OnPush(Delta("a", 5, 6, {TenantObject("t", 6)}));
  core_.OnStreamClosed();
  Applied();
  EXPECT_FALSE(LastReport().has_value());
  core_.OnStreamOpened(now_);
  EXPECT_EQ(sent_.at(0).hello().applied_revision(), 6);
  model::ObjectsDigest digest;
  digest.Add("tenants/t", 6);
  EXPECT_EQ(sent_.at(0).hello().objects_digest(), digest.value());
}

TEST_F(AgentCoreTest, PushDuringAnApply_IsAppliedNextAndAnsweredOnce) {
  Settle();
  core_.OnPush(Delta("a", 5, 6, {TenantObject("t", 6)}));
  core_.OnStreamClosed();
  core_.OnStreamOpened(now_);
  core_.OnPush(FullPush("a", 7, {TenantObject("t", 7)}));
  EXPECT_EQ(applies_.size(), 1u) << "one at a time";
  Applied();
  ASSERT_EQ(applies_.size(), 2u);
  EXPECT_FALSE(LastReport().has_value());
  Applied();
  EXPECT_EQ(LastReport()->nonce(), "n7");
}

TEST_F(AgentCoreTest, Restored_ServesTheGatewayBeforeTheControllerIsThere) {
  Settle();
  AgentCore next("gateways/g", "1.0", *this);
  next.Restore(*saved_);
  gateway::v1::GetConfigResponse config;
  config.set_source("static");
  next.OnGatewayUp(config);
  ASSERT_EQ(applies_.size(), 1u);
  EXPECT_EQ(applies_[0].revision(), 5);
}

TEST_F(AgentCoreTest, RestoredButOlderThanTheGateway_TakesNothingBack) {
  Settle();
  AgentCore next("gateways/g", "1.0", *this);
  next.Restore(*saved_);
  gateway::v1::GetConfigResponse config;
  config.set_source("a");
  config.set_applied_revision(6);
  next.OnGatewayUp(config);
  EXPECT_TRUE(applies_.empty());
  next.OnStreamOpened(now_);
  next.OnPush(FullPush("a", 7, {TenantObject("t", 7)}));
  ASSERT_EQ(applies_.size(), 1u);
  EXPECT_EQ(applies_[0].revision(), 7);
}

TEST_F(AgentCoreTest, Heartbeats_TellNewsAtOnceAndOtherwiseNowAndThen) {
  Settle();
  fleet::v1::Heartbeat status;
  status.set_gateway_version("2.0");
  core_.OnGatewayStatus(status, now_);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(sent_[0].heartbeat().gateway_connected());
  status.mutable_totals()->set_qps(5);
  core_.OnGatewayStatus(status, now_);
  EXPECT_EQ(sent_.size(), 1u) << "totals are no news";
  core_.Tick(now_ + Seconds(29));
  EXPECT_EQ(sent_.size(), 1u);
  core_.Tick(now_ + Seconds(30));
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_EQ(sent_[1].heartbeat().totals().qps(), 5u);
  core_.OnGatewayDown(now_ + Seconds(31));
  ASSERT_EQ(sent_.size(), 3u);
  EXPECT_FALSE(sent_[2].heartbeat().gateway_connected());
}

}  // namespace
}  // namespace rocegw::agent
