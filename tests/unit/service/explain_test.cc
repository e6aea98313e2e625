// SPDX-License-Identifier: Apache-2.0
// Explanations of simulated states: findings, their order, and what a tenant does not see.
#include "gateway/service/explain.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/service/fake_source.h"

namespace rocegw::service {
namespace {

using gateway::v1::ExplainRequest;
using gateway::v1::ExplainResponse;
using gateway::v1::Finding;

constexpr char kPool[] = "tenants/red/pools/p1";

class ExplainTest : public ::testing::Test {
 protected:
  ExplainTest() {
    state_.drain.active = false;
    auto& rejection = *config_.add_rejections();
    rejection.set_object("tenants/blue/pools/x");
    rejection.set_reason("ADDRESS_TAKEN");
    rejection.set_message("10.0.0.1 belongs to another pool");
  }
  ExplainResponse Ask(const ExplainRequest& request = {}, const std::string& not_ready = {}) {
    return Explain(request, identity_, not_ready, state_, config_);
  }
  static const Finding* Find(const ExplainResponse& response, const std::string& reason) {
    const auto found = std::ranges::find(response.findings(), reason, &Finding::reason);
    return found == response.findings().end() ? nullptr : &*found;
  }

  GatewayIdentity identity_ = TestIdentity();
  session::StateSnapshot state_ = TestState();
  gateway::v1::GetConfigResponse config_;
};

TEST_F(ExplainTest, Drops_HaveTheSentenceOfTheList_AndTheSumOfAllWorkers) {
  const ExplainResponse all = Ask();
  const Finding* const icrc = Find(all, "bad_icrc");
  ASSERT_NE(icrc, nullptr);
  EXPECT_EQ(icrc->kind(), gateway::v1::PACKETS_DROPPED);
  EXPECT_EQ(icrc->count(), 15u);
  EXPECT_NE(icrc->message().find("invariant CRC wrong"), std::string::npos);
  const Finding* const cm = Find(all, "cm_unmatched");
  ASSERT_NE(cm, nullptr) << "counted on the control thread";
  EXPECT_EQ(cm->count(), 2u);
}

TEST_F(ExplainTest, EverythingInTheWay_MostPressingFirst) {
  state_.drain.active = true;
  state_.drain.holders = {"session 3 (ib_write_bw, pid 4242): 2 queue pairs"};
  state_.drain.sessions = 1;
  state_.pools[0].limits[0].used = 20;
  const ExplainResponse all = Ask({}, "the device is gone");
  for (int i = 1; i < all.findings_size(); ++i)
    EXPECT_LE(all.findings(i - 1).kind(), all.findings(i).kind());
  EXPECT_EQ(Find(all, "NOT_READY")->message(), "the device is gone");
  EXPECT_NE(Find(all, "DRAINING")->message().find("ib_write_bw"), std::string::npos);
  EXPECT_EQ(Find(all, "ADDRESS_TAKEN")->object(), "tenants/blue/pools/x");
  EXPECT_EQ(Find(all, "ERR")->object(), "gateways/host-a/qps/0x000012");
  EXPECT_NE(Find(all, "ERR")->message().find("completion queue overrun"), std::string::npos);
  const Finding* const limit = Find(all, "qps");
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(limit->kind(), gateway::v1::LIMIT_REACHED);
  EXPECT_NE(limit->message().find("spec.quota.peak.qps"), std::string::npos);
  const Finding* const event = Find(all, "QUOTA_EXCEEDED");
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->count(), 5u);
  EXPECT_EQ(event->message(), "limit of qps reached");
}

TEST_F(ExplainTest, RefusalsWhoseEventIsForgotten_AreToldByTheirCount) {
  const ExplainResponse all = Ask();
  const Finding* const counted = Find(all, "connects_per_second");
  ASSERT_NE(counted, nullptr);
  EXPECT_EQ(counted->object(), "tenants/red/pools/p2") << "p1 has an event";
  EXPECT_EQ(counted->count(), 4u);
}

TEST_F(ExplainTest, OfATenant_TellsNothingOfOthers) {
  state_.drain.active = true;
  state_.drain.sessions = 1;
  state_.drain.holders = {"session 3 (ib_write_bw, pid 4242): 2 queue pairs"};
  ExplainRequest request;
  request.set_pool("tenants/red/pools/-");
  const ExplainResponse red = Ask(request);
  EXPECT_NE(Find(red, "QUOTA_EXCEEDED"), nullptr);
  EXPECT_NE(Find(red, "connects_per_second"), nullptr);
  for (const Finding& finding : red.findings()) {
    EXPECT_NE(finding.kind(), gateway::v1::PACKETS_DROPPED);
    EXPECT_NE(finding.kind(), gateway::v1::QUEUE_PAIR_FAILED) << "it is the default tenant's";
    EXPECT_EQ(finding.ShortDebugString().find("blue"), std::string::npos);
    EXPECT_EQ(finding.ShortDebugString().find("ib_write_bw"), std::string::npos);
  }
  request.set_pool(kPool);
  EXPECT_EQ(Find(Ask(request), "connects_per_second"), nullptr) << "that is p2's";
}

TEST_F(ExplainTest, OfAQueuePair_TellsItsStateAndItsPoolsLimits) {
  ExplainRequest request;
  request.set_qpn(0x12);
  EXPECT_NE(Find(Ask(request), "ERR"), nullptr);
  EXPECT_EQ(Find(Ask(request), "QUOTA_EXCEEDED"), nullptr) << "of another pool";
  request.set_qpn(0x99);
  const ExplainResponse none = Ask(request);
  ASSERT_NE(Find(none, "UNKNOWN"), nullptr);
  EXPECT_NE(Find(none, "UNKNOWN")->message().find("unknown_qpn"), std::string::npos);
  request.set_qpn(0x12);
  request.set_pool(kPool);
  EXPECT_NE(Find(Ask(request), "UNKNOWN"), nullptr) << "a tenant does not learn of others' numbers";
}

}  // namespace
}  // namespace rocegw::service
