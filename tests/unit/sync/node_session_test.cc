// SPDX-License-Identifier: Apache-2.0
#include "controlplane/sync/node_session.h"

#include <gtest/gtest.h>

#include "controlplane/model/objects_digest.h"
#include "controlplane/model/push_parts.h"
#include "tests/support/fleet_fixture.h"

namespace rocegw::sync {
namespace {

using rocegw::testing::GatewayWith;
using rocegw::testing::PoolWith;
using rocegw::testing::TenantWith;

constexpr char kStore[] = "store-a";

class NodeSessionTest : public ::testing::Test {
 protected:
  NodeSessionTest() {
    fleet_.Put(GatewayWith("g"));
    fleet_.Put(TenantWith("acme"));
    fleet_.Put(PoolWith("acme", "gold", ""));
    hello_.set_gateway("gateways/g");
  }
  Fleet Known() const { return {.view = fleet_.view, .placement = fleet_.placement, .guards = {}}; }
  static std::set<std::string> Names(const std::vector<types::v1::Push>& parts) {
    std::set<std::string> names;
    for (const auto& part : parts) {
      for (const auto& object : part.objects()) names.insert(object.name());
    }
    return names;
  }
  types::v1::PushReport Report(const types::v1::Push& push, types::v1::PushStatus status) {
    types::v1::PushReport report;
    report.set_nonce(push.nonce());
    report.set_status(status);
    report.set_store_uuid(kStore);
    report.set_applied_revision(status == types::v1::APPLIED ? push.revision() : 0);
    return report;
  }
  // The first push is sent and applied.
  NodeSession Settled() {
    NodeSession session("gateways/g", kStore, hello_, fleet_.view.revision);
    const auto parts = session.NextPush(Known());
    EXPECT_TRUE(session.OnReport(Report(parts.back(), types::v1::APPLIED)));
    return session;
  }

  rocegw::testing::Fleet fleet_;
  fleet::v1::Hello hello_;
};

// A gateway without capacity may have some later without a change of the fleet.
TEST_F(NodeSessionTest, RejectedByTheHost_IsSentAgainOnceAMinute) {
  using std::chrono::seconds;
  NodeSession session = Settled();
  const std::chrono::steady_clock::time_point start{};
  EXPECT_FALSE(session.RetryRejected(start)) << "nothing is rejected";
  fleet_.Put(PoolWith("acme", "gold", "", 7));
  session.Touch({"tenants/acme/pools/gold", "tenants/acme"}, fleet_.view.revision);
  types::v1::PushReport report = Report(session.NextPush(Known()).back(), types::v1::APPLIED);
  const auto reject = [&](const char* object, const char* reason) {
    types::v1::Rejection& rejection = *report.add_rejections();
    rejection.set_object(object);
    rejection.set_reason(reason);
  };
  reject("tenants/acme/pools/gold", "SOCKET_FAILED");
  reject("tenants/acme", "INVALID");
  ASSERT_TRUE(session.OnReport(report));
  EXPECT_FALSE(session.RetryRejected(start));
  EXPECT_FALSE(session.RetryRejected(start + seconds(59)));
  EXPECT_FALSE(session.has_next());
  EXPECT_TRUE(session.RetryRejected(start + seconds(60)));
  EXPECT_FALSE(session.RetryRejected(start + seconds(61)));
  const auto parts = session.NextPush(Known());
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_FALSE(parts[0].full());
  EXPECT_TRUE(Names(parts).contains("tenants/acme/pools/gold"));
  EXPECT_FALSE(session.RetryRejected(start + seconds(300))) << "its answer is awaited";
  ASSERT_TRUE(session.OnReport(Report(parts.back(), types::v1::APPLIED)));
  EXPECT_FALSE(session.RetryRejected(start + seconds(300)));
  EXPECT_TRUE(session.in_sync());
}

TEST_F(NodeSessionTest, FirstPush_IsTheWholeState) {
  NodeSession session("gateways/g", kStore, hello_, fleet_.view.revision);
  EXPECT_FALSE(session.in_sync());
  const auto parts = session.NextPush(Known());
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_TRUE(parts[0].full());
  EXPECT_FALSE(parts[0].more());
  EXPECT_EQ(parts[0].store_uuid(), kStore);
  EXPECT_EQ(parts[0].revision(), fleet_.view.revision);
  EXPECT_EQ(Names(parts),
            (std::set<std::string>{"gateways/g", "tenants/acme", "tenants/acme/pools/gold"}));
  ASSERT_TRUE(session.OnReport(Report(parts[0], types::v1::APPLIED)));
  EXPECT_TRUE(session.in_sync());
  EXPECT_EQ(session.applied_revision(), fleet_.view.revision);
  EXPECT_TRUE(session.NextPush(Known()).empty());
}

TEST_F(NodeSessionTest, AgentThatHasEverything_IsSentNothing) {
  NodeSession first("gateways/g", kStore, hello_, fleet_.view.revision);
  model::ObjectsDigest digest;
  const auto whole = first.NextPush(Known());
  for (const auto& object : whole.at(0).objects()) digest.Add(object);
  hello_.set_store_uuid(kStore);
  hello_.set_applied_revision(fleet_.view.revision);
  hello_.set_objects_digest(digest.value());
  // Change that does not concern the gateway.
  fleet_.Put(TenantWith("other"));
  NodeSession session("gateways/g", kStore, hello_, fleet_.view.revision);
  EXPECT_TRUE(session.NextPush(Known()).empty());
  EXPECT_TRUE(session.in_sync());
  EXPECT_EQ(session.applied_revision(), fleet_.view.revision);
  fleet_.Delete("tenants/acme/pools/gold");
  session.Touch({"tenants/acme/pools/gold"}, fleet_.view.revision);
  const auto delta = session.NextPush(Known());
  ASSERT_EQ(delta.size(), 1u);
  EXPECT_EQ(delta[0].base_revision(), hello_.applied_revision()) << "what the agent has";
  NodeSession changed("gateways/g", kStore, hello_, fleet_.view.revision);
  EXPECT_EQ(changed.NextPush(Known()).size(), 1u) << "a pool is gone meanwhile";
  hello_.set_store_uuid("another");
  NodeSession stranger("gateways/g", kStore, hello_, fleet_.view.revision);
  EXPECT_EQ(stranger.NextPush(Known()).size(), 1u);
}

TEST_F(NodeSessionTest, ChangesWhileAnAnswerIsAwaited_GatherByName) {
  NodeSession session = Settled();
  const store::Revision applied = session.applied_revision();
  session.Touch({"tenants/acme"}, fleet_.view.revision + 1);
  const auto first = session.NextPush(Known());
  ASSERT_EQ(first.size(), 1u);
  EXPECT_FALSE(first[0].full());
  EXPECT_EQ(first[0].base_revision(), applied);
  session.Touch({"tenants/acme/pools/gold"}, 8);
  session.Touch({"tenants/acme/pools/gold", "tenants/acme"}, 9);
  EXPECT_TRUE(session.NextPush(Known()).empty()) << "one push is unanswered";
  fleet_.Delete("tenants/acme/pools/gold");
  ASSERT_TRUE(session.OnReport(Report(first[0], types::v1::APPLIED)));
  const auto second = session.NextPush(Known());
  ASSERT_EQ(second.size(), 1u);
  EXPECT_NE(second[0].nonce(), first[0].nonce());
  ASSERT_EQ(second[0].objects_size(), 2);
  EXPECT_TRUE(second[0].objects(0).removed()) << "its pool came off the gateway with it";
  EXPECT_TRUE(second[0].objects(1).removed());
}

TEST_F(NodeSessionTest, ReportOfAnotherPush_IsNoAnswer) {
  NodeSession session = Settled();
  types::v1::PushReport stray;
  stray.set_nonce("77");
  EXPECT_FALSE(session.OnReport(stray));
  session.Touch({"tenants/acme"}, 9);
  const auto parts = session.NextPush(Known());
  EXPECT_FALSE(session.OnReport(stray));
  ASSERT_TRUE(session.OnReport(Report(parts[0], types::v1::APPLIED)));
  EXPECT_FALSE(session.OnReport(Report(parts[0], types::v1::APPLIED))) << "it was answered";
}

TEST_F(NodeSessionTest, NeedFull_SendsTheWholeState) {
  NodeSession session = Settled();
  session.Touch({"tenants/acme"}, 9);
  const auto delta = session.NextPush(Known());
  ASSERT_TRUE(session.OnReport(Report(delta[0], types::v1::NEED_FULL)));
  const auto parts = session.NextPush(Known());
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_TRUE(parts[0].full());
  EXPECT_EQ(parts[0].base_revision(), 0);
}

TEST_F(NodeSessionTest, Unadopted_GetsNothingUntilAdopted) {
  NodeSession session("gateways/g", kStore, hello_, fleet_.view.revision);
  auto parts = session.NextPush(Known());
  auto report = Report(parts[0], types::v1::UNADOPTED);
  report.set_store_uuid("store-b");
  report.set_applied_revision(1000);
  ASSERT_TRUE(session.OnReport(report));
  EXPECT_TRUE(session.unadopted());
  EXPECT_FALSE(session.in_sync());
  EXPECT_EQ(session.applied_revision(), 0) << "another store's revisions say nothing";
  session.Touch({"tenants/acme"}, 9);
  EXPECT_TRUE(session.NextPush(Known()).empty());
  session.Adopt(9);
  parts = session.NextPush(Known());
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_TRUE(parts[0].full());
  EXPECT_TRUE(parts[0].adopt());
  ASSERT_TRUE(session.OnReport(Report(parts[0], types::v1::APPLIED)));
  EXPECT_TRUE(session.in_sync());
  session.Touch({"tenants/acme"}, 10);
  EXPECT_FALSE(session.NextPush(Known())[0].adopt());
}

TEST_F(NodeSessionTest, WhatWasRejected_ComesAgainWithTheNextPush) {
  NodeSession session = Settled();
  session.Touch({"tenants/acme/pools/gold"}, 9);
  auto parts = session.NextPush(Known());
  auto report = Report(parts[0], types::v1::APPLIED);
  report.add_rejections()->set_object("tenants/acme/pools/gold");
  ASSERT_TRUE(session.OnReport(report));
  EXPECT_TRUE(session.in_sync()) << "nothing is on its way";
  EXPECT_EQ(session.rejections().size(), 1u);
  session.Touch({"tenants/acme"}, 10);
  EXPECT_EQ(Names(session.NextPush(Known())),
            (std::set<std::string>{"tenants/acme", "tenants/acme/pools/gold"}));
}

TEST_F(NodeSessionTest, RejectionsBeyondTheLimit_AreNotKept_ButTheWholeStateComesAgain) {
  NodeSession session = Settled();
  session.Touch({"tenants/acme"}, 9);
  auto report = Report(session.NextPush(Known())[0], types::v1::APPLIED);
  for (size_t i = 0; i < 2 * NodeSession::kMostRejections; ++i) {
    types::v1::Rejection& rejection = *report.add_rejections();
    rejection.set_object("tenants/t" + std::to_string(i));
    rejection.set_message(std::string(10000, 'm'));
  }
  ASSERT_TRUE(session.OnReport(report));
  EXPECT_EQ(session.rejections().size(), NodeSession::kMostRejections);
  EXPECT_LE(session.rejections().front().message().size(), 512u);
  session.Touch({"tenants/acme"}, 10);
  const auto parts = session.NextPush(Known());
  EXPECT_TRUE(parts[0].full());
  EXPECT_TRUE(Names(parts).contains("tenants/acme/pools/gold"));
}

TEST_F(NodeSessionTest, LargeState_GoesInPartsOfOnePush) {
  for (int i = 0; i < 3000; ++i) {
    auto pool = PoolWith("acme", "p" + std::to_string(i), "");
    for (int peer = 0; peer < 20; ++peer)
      pool.mutable_spec()->add_allowed_peers("10.0." + std::to_string(peer) + ".0/24");
    fleet_.Put(pool);
  }
  NodeSession session("gateways/g", kStore, hello_, fleet_.view.revision);
  const auto parts = session.NextPush(Known());
  ASSERT_GT(parts.size(), 1u);
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].nonce(), parts[0].nonce());
    EXPECT_EQ(parts[i].more(), i + 1 < parts.size());
    EXPECT_LT(parts[i].ByteSizeLong(), 2 * model::kPushPartBytes);
  }
  EXPECT_EQ(Names(parts).size(), 3003u);
  EXPECT_TRUE(session.NextPush(Known()).empty());
}

}  // namespace
}  // namespace rocegw::sync
