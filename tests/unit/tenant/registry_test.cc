// SPDX-License-Identifier: Apache-2.0
#include "gateway/tenant/registry.h"

#include <gtest/gtest.h>

namespace rocegw::tenant {
namespace {

constexpr TimePoint kNow{Seconds(100).ns};

TenantSettings TenantNamed(const std::string& name, uint64_t qps = kUnlimited) {
  TenantSettings settings;
  settings.name = name;
  settings.quota.peak[Resource::kQps] = qps;
  return settings;
}

PoolSettings PoolNamed(const std::string& name, uint64_t qps = kUnlimited,
                       const std::string& uid = "1") {
  PoolSettings settings;
  settings.name = name;
  settings.uid = uid;
  settings.quota.peak[Resource::kQps] = qps;
  return settings;
}

class RegistryTest : public ::testing::Test {
 protected:
  RegistryTest() {
    registry.SetTenant(TenantNamed("tenants/red"));
    registry.SetTenant(TenantNamed("tenants/blue"));
  }
  static Amounts Capacity() {
    Amounts capacity = Amounts::Of(kUnlimited);
    capacity[Resource::kQps] = 100;
    return capacity;
  }
  size_t Pools() const {
    size_t count = 0;
    registry.ForEachPool([&](const Pool&) { ++count; });
    return count;
  }

  Registry registry{Capacity()};
};

TEST_F(RegistryTest, Refusal_SaysWhoseLimitAndWhich) {
  Pool& pool = registry.SetPool(PoolNamed("tenants/red/pools/a", 3));
  ASSERT_FALSE(pool.Take(Resource::kQps, 3));
  auto refusal = pool.Take(Resource::kQps);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->text, "tenants/red/pools/a: limit of qps reached, which is 3 for the pool");
  EXPECT_EQ(refusal->limit, "qps");
  EXPECT_EQ(refusal->level, Level::kPool);

  registry.SetTenant(TenantNamed("tenants/red", 2));
  registry.SetPool(PoolNamed("tenants/red/pools/a", 50));
  refusal = pool.Take(Resource::kQps);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->text,
            "tenants/red/pools/a: limit of qps reached, which is 2 for its tenant tenants/red, "
            "less what is committed to others");

  Pool& other = registry.SetPool(PoolNamed("tenants/blue/pools/a"));
  refusal = other.Take(Resource::kQps, 98);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->level, Level::kGateway);
  EXPECT_EQ(other.refused(static_cast<size_t>(Resource::kQps)), 1u);
  EXPECT_EQ(pool.refused(static_cast<size_t>(Resource::kQps)), 2u);
  pool.Give(Resource::kQps, 3);
}

TEST_F(RegistryTest, Connects_AreRefusedByRate) {
  PoolSettings settings = PoolNamed("tenants/red/pools/a");
  settings.quota.peak[Rate::kConnects] = 2;
  Pool& pool = registry.SetPool(settings);
  EXPECT_FALSE(pool.TakeConnect(kNow));
  EXPECT_FALSE(pool.TakeConnect(kNow));
  const auto refusal = pool.TakeConnect(kNow);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->text,
            "tenants/red/pools/a: limit of connects_per_second reached, which is 2 for the pool");
  EXPECT_EQ(pool.refused(kResources), 1u);
  EXPECT_FALSE(pool.TakeConnect(kNow + Seconds(1)));
}

TEST_F(RegistryTest, Peak_IsTheSmallestAbove) {
  Pool& pool = registry.SetPool(PoolNamed("tenants/red/pools/a"));
  EXPECT_EQ(pool.Peak(Resource::kQps), 100u);
  registry.SetTenant(TenantNamed("tenants/red", 40));
  EXPECT_EQ(pool.Peak(Resource::kQps), 40u);
  registry.SetPool(PoolNamed("tenants/red/pools/a", 30));
  EXPECT_EQ(pool.Peak(Resource::kQps), 30u);
}

TEST_F(RegistryTest, PoolRemovedInUse_StaysWithoutRoomUntilItIsEmpty) {
  PoolSettings settings = PoolNamed("tenants/red/pools/a");
  settings.quota.committed[Resource::kQps] = 60;
  Pool& pool = registry.SetPool(settings);
  ASSERT_FALSE(pool.Take(Resource::kQps, 10));
  registry.RemovePool("tenants/red/pools/a");
  registry.RemoveTenant("tenants/red");
  EXPECT_EQ(registry.FindPool("tenants/red/pools/a"), nullptr);
  EXPECT_EQ(Pools(), 1u);
  EXPECT_TRUE(pool.leaving());
  const auto refusal = pool.Take(Resource::kQps);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->text,
            "tenants/red/pools/a: no more qps, the pool is not in the configuration any more");
  EXPECT_TRUE(pool.TakeConnect(kNow));
  Pool& other = registry.SetPool(PoolNamed("tenants/blue/pools/a"));
  EXPECT_EQ(other.Left(Resource::kQps), 90u) << "what it had committed is free, what it holds not";
  pool.Give(Resource::kQps, 10);
  registry.Reap();
  EXPECT_EQ(Pools(), 1u);
  EXPECT_EQ(other.Left(Resource::kQps), 100u);
}

TEST_F(RegistryTest, SameNameOtherUid_IsAnotherPool) {
  Pool& old = registry.SetPool(PoolNamed("tenants/red/pools/a", 5, "1"));
  ASSERT_FALSE(old.Take(Resource::kSessions));
  Pool& changed = registry.SetPool(PoolNamed("tenants/red/pools/a", 6, "1"));
  EXPECT_EQ(&changed, &old);
  Pool& other = registry.SetPool(PoolNamed("tenants/red/pools/a", 5, "2"));
  EXPECT_NE(&other, &old);
  EXPECT_NE(other.id(), old.id());
  EXPECT_TRUE(old.leaving());
  EXPECT_EQ(registry.FindPool("tenants/red/pools/a"), &other);
  old.Give(Resource::kSessions);
  registry.Reap();
  EXPECT_EQ(Pools(), 1u);
}

TEST(Prefix, Contains_LooksAtTheFirstBitsOnly) {
  Prefix prefix{wire::Gid::FromV4(0xC0000200), 96 + 23};
  EXPECT_TRUE(prefix.Contains(wire::Gid::FromV4(0xC0000301)));
  EXPECT_FALSE(prefix.Contains(wire::Gid::FromV4(0xC0000401)));
  EXPECT_FALSE(prefix.Contains(wire::Gid{}));
  EXPECT_TRUE((Prefix{{}, 0}.Contains(wire::Gid::FromV4(1))));
  prefix.bits = 128;
  EXPECT_TRUE(prefix.Contains(wire::Gid::FromV4(0xC0000200)));
  EXPECT_FALSE(prefix.Contains(wire::Gid::FromV4(0xC0000201)));
  EXPECT_TRUE(wire::Contain({}, wire::Gid::FromV4(1)));
  EXPECT_FALSE(wire::Contain({prefix}, wire::Gid::FromV4(1)));
}

// A claim of a pod has a part of its pool.
TEST_F(RegistryTest, SlotsLimits_AreNamedInRefusals_BesidePoolAndTenant) {
  PoolSettings settings = PoolNamed("tenants/red/pools/p");
  settings.quota.peak[Rate::kBytes] = 5000;
  Pool& pool = registry.SetPool(settings);
  SlotShare slot(pool.share(), {.qps = 3, .bytes_per_second = 1000}, "attach.sock");
  EXPECT_TRUE(slot.TakeQps(2));
  EXPECT_FALSE(slot.TakeQps(2)) << "all or none";
  EXPECT_TRUE(slot.TakeQps(1));
  slot.GiveQps(3);
  EXPECT_EQ(pool.RefuseSlot(slot).text,
            "tenants/red/pools/p: limit of qps reached, which is 3 for the slot, by the claim of "
            "its pod");
  EXPECT_EQ(pool.RefuseSlot(slot).level, Level::kSlot);
  EXPECT_EQ(pool.refused(static_cast<size_t>(Resource::kQps)), 2u);
  EXPECT_EQ(pool.HeldBack(Rate::kBytes, &slot.bytes).level, Level::kSlot);
  EXPECT_NE(pool.HeldBack(Rate::kBytes, &slot.bytes).text.find("1000 for the slot"),
            std::string::npos);
  EXPECT_EQ(pool.HeldBack(Rate::kBytes, &pool.share().bytes).level, Level::kPool);
  EXPECT_EQ(pool.HeldBack(Rate::kBytes, &pool.share().parent()->bytes).level, Level::kTenant);
  EXPECT_EQ(pool.HeldBack(Rate::kBytes, &pool.share().parent()->parent()->bytes).level,
            Level::kGateway);
}

TEST_F(RegistryTest, SlotWithoutALimitOfAKind_HasThePoolsOnly) {
  Pool& pool = registry.SetPool(PoolNamed("tenants/red/pools/p"));
  SlotShare slot(pool.share(), {.bytes_per_second = 1000}, "attach.sock");
  EXPECT_TRUE(slot.TakeQps(1'000'000));
  EXPECT_EQ(slot.MostQps(), kUnlimited);
  slot.GiveQps(1'000'000);
  SlotShare other(pool.share(), {.qps = 1}, "attach.sock");
  EXPECT_FALSE(other.bytes.limited());
}

}  // namespace
}  // namespace rocegw::tenant
