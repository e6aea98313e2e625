// SPDX-License-Identifier: Apache-2.0
#include "agent/reconcile/desired_config.h"

#include <gtest/gtest.h>

#include "tests/support/session/push_fixture.h"

namespace rocegw::agent {
namespace {

using Verdict = DesiredConfig::Verdict;
using rocegw::testing::Delta;
using rocegw::testing::FullPush;
using rocegw::testing::Removal;
using rocegw::testing::TenantObject;

TEST(DesiredConfig, FirstPush_MustBeWhole) {
  DesiredConfig config;
  EXPECT_EQ(config.Take(Delta("a", 4, 5, {TenantObject("t", 5)})), Verdict::kNeedFull);
  EXPECT_EQ(config.store_uuid(), "");
  EXPECT_EQ(config.Take(FullPush("a", 5, {TenantObject("t", 5)})), Verdict::kTaken);
  EXPECT_EQ(config.revision(), 5);
}

TEST(DesiredConfig, Delta_ChangesAndRemoves) {
  DesiredConfig config;
  config.Take(FullPush("a", 5, {TenantObject("t", 5), TenantObject("u", 5)}));
  EXPECT_EQ(config.Take(Delta("a", 5, 7, {TenantObject("t", 7), Removal("tenants/u")})),
            Verdict::kTaken);
  EXPECT_EQ(config.Find("tenants/t")->revision(), 7);
  EXPECT_EQ(config.Find("tenants/u"), nullptr);
  EXPECT_EQ(config.Take(Delta("a", 5, 9, {})), Verdict::kNeedFull) << "something was missed";
  EXPECT_EQ(config.revision(), 7);
}

TEST(DesiredConfig, AnotherStoreOrThePast_IsNotFollowedUntilAdopted) {
  DesiredConfig config;
  config.Take(FullPush("a", 5, {TenantObject("t", 5)}));
  EXPECT_EQ(config.Take(FullPush("b", 9, {})), Verdict::kUnadopted);
  EXPECT_EQ(config.Take(FullPush("a", 4, {})), Verdict::kUnadopted);
  EXPECT_NE(config.Find("tenants/t"), nullptr);
  auto adopting = FullPush("b", 2, {});
  adopting.set_adopt(true);
  EXPECT_EQ(config.Take(adopting), Verdict::kTaken);
  EXPECT_EQ(config.Find("tenants/t"), nullptr);
  EXPECT_EQ(config.store_uuid(), "b");
}

TEST(DesiredConfig, Parts_TakeEffectTogether) {
  DesiredConfig config;
  auto first = FullPush("a", 5, {TenantObject("t", 5)});
  first.set_more(true);
  EXPECT_EQ(config.Take(first), Verdict::kIncomplete);
  EXPECT_EQ(config.Find("tenants/t"), nullptr);
  EXPECT_EQ(config.Take(FullPush("a", 5, {TenantObject("u", 5)})), Verdict::kTaken);
  EXPECT_NE(config.Find("tenants/t"), nullptr);
  EXPECT_NE(config.Find("tenants/u"), nullptr);
}

TEST(DesiredConfig, PartsOfAPushThatWasGivenUp_AreDropped) {
  DesiredConfig config;
  auto first = FullPush("a", 5, {TenantObject("t", 5)});
  first.set_more(true);
  config.Take(first);
  auto other = FullPush("a", 6, {TenantObject("u", 6)});
  other.set_nonce("other");
  EXPECT_EQ(config.Take(other), Verdict::kTaken);
  EXPECT_EQ(config.Find("tenants/t"), nullptr);
  first.set_revision(7);
  config.Take(first);
  config.DropParts();
  EXPECT_EQ(config.Take(FullPush("a", 8, {})), Verdict::kTaken);
  EXPECT_EQ(config.Find("tenants/t"), nullptr);
}

TEST(DesiredConfig, Full_AdoptsOnlyWhatWasFollowedOnce) {
  DesiredConfig config;
  config.Take(FullPush("a", 5, {TenantObject("t", 5)}));
  EXPECT_FALSE(config.Full().adopt()) << "the gateway may follow another store";
  config.Confirm();
  EXPECT_TRUE(config.Full().adopt());
  EXPECT_TRUE(config.Full().full());
  DesiredConfig restored;
  EXPECT_FALSE(restored.Restore({}));
  ASSERT_TRUE(restored.Restore(config.Saved()));
  EXPECT_TRUE(restored.Full().adopt());
  EXPECT_EQ(restored.Full().SerializeAsString(), config.Full().SerializeAsString());
}

TEST(DesiredConfig, ObjectOfANewerVersion_IsPassedOn) {
  DesiredConfig config;
  types::v1::ConfigObject unknown;
  unknown.set_name("shiny/s");
  config.Take(FullPush("a", 5, {unknown, TenantObject("t", 5)}));
  const types::v1::Push push = config.Full();
  ASSERT_EQ(push.objects_size(), 2);
  EXPECT_EQ(push.objects(1).name(), "shiny/s");
}

}  // namespace
}  // namespace rocegw::agent
