// SPDX-License-Identifier: Apache-2.0
#include "gateway/tenant/quota_node.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace rocegw::tenant {
namespace {

constexpr Resource kQps = Resource::kQps;

Quota QuotaOf(uint64_t committed, uint64_t peak) {
  Quota quota;
  quota.committed[kQps] = committed;
  quota.peak[kQps] = peak;
  return quota;
}

// Two tenants with two pools each on a gateway for 100 queue pairs.
class QuotaNodeTest : public ::testing::Test {
 protected:
  QuotaNodeTest() { gateway.SetQuota(QuotaOf(0, 100)); }
  ~QuotaNodeTest() override {
    for (QuotaNode* pool : {&red1, &red2, &blue1}) {
      for (size_t i = 0; i < kResources; ++i) {
        const auto resource = static_cast<Resource>(i);
        pool->Give(resource, pool->used(resource));
      }
    }
  }

  QuotaNode gateway{"gateway", Level::kGateway, nullptr};
  QuotaNode red{"tenants/red", Level::kTenant, &gateway};
  QuotaNode blue{"tenants/blue", Level::kTenant, &gateway};
  QuotaNode red1{"tenants/red/pools/1", Level::kPool, &red};
  QuotaNode red2{"tenants/red/pools/2", Level::kPool, &red};
  QuotaNode blue1{"tenants/blue/pools/1", Level::kPool, &blue};
};

// Resources that the daemon's process has once for all.
TEST_F(QuotaNodeTest, DaemonsOwn_GreedyPoolsLeaveAPartToTheNext) {
  constexpr Resource kDescriptors = Resource::kDescriptors;
  Quota quota;
  quota.peak[kDescriptors] = 900;
  gateway.SetQuota(quota);
  const auto take_all = [](QuotaNode& pool) {
    uint64_t taken = 0;
    while (pool.Take(kDescriptors) == nullptr) ++taken;
    return taken;
  };
  // Four times what it leaves free.
  EXPECT_EQ(take_all(red1), 720u);
  EXPECT_EQ(red1.Left(kDescriptors), 0u);
  EXPECT_EQ(red1.Take(kDescriptors), &gateway);
  EXPECT_EQ(blue1.Take(kDescriptors, 100), nullptr) << "the next pool gets some of the rest";
  EXPECT_EQ(take_all(blue1), 44u);
  EXPECT_EQ(red2.Take(kDescriptors, 28), nullptr);
}

TEST_F(QuotaNodeTest, DaemonsOwn_CommittedIsAlwaysGranted) {
  constexpr Resource kDescriptors = Resource::kDescriptors;
  Quota all;
  all.peak[kDescriptors] = 100;
  gateway.SetQuota(all);
  Quota promised;
  promised.committed[kDescriptors] = 95;
  red1.SetQuota(promised);
  EXPECT_EQ(red1.Take(kDescriptors, 95), nullptr);
  EXPECT_EQ(red1.Take(kDescriptors), &gateway);
}

TEST_F(QuotaNodeTest, Take_UpToThePoolsPeak_PoolRefuses) {
  red1.SetQuota(QuotaOf(0, 3));
  EXPECT_EQ(red1.Take(kQps, 3), nullptr);
  EXPECT_EQ(red1.Take(kQps), &red1);
  EXPECT_EQ(red1.used(kQps), 3u);
  red1.Give(kQps);
  EXPECT_EQ(red1.Take(kQps), nullptr);
}

TEST_F(QuotaNodeTest, Take_TenantsPeakReachedByAnotherPool_TenantRefuses) {
  red.SetQuota(QuotaOf(0, 10));
  EXPECT_EQ(red2.Take(kQps, 8), nullptr);
  EXPECT_EQ(red1.Take(kQps, 3), &red);
  EXPECT_EQ(red1.used(kQps), 0u);
  EXPECT_EQ(red1.Take(kQps, 2), nullptr);
  EXPECT_EQ(blue1.Take(kQps, 90), nullptr);
}

TEST_F(QuotaNodeTest, Take_GatewayFull_GatewayRefuses) {
  EXPECT_EQ(red1.Take(kQps, 60), nullptr);
  EXPECT_EQ(blue1.Take(kQps, 41), &gateway);
  EXPECT_EQ(blue1.Take(kQps, 40), nullptr);
  EXPECT_EQ(gateway.used(kQps), 100u);
}

TEST_F(QuotaNodeTest, Committed_OthersTookAllTheyCould_StillGranted) {
  blue1.SetQuota(QuotaOf(30, 50));
  EXPECT_EQ(red1.Left(kQps), 70u);
  EXPECT_EQ(red1.Take(kQps, 71), &gateway);
  EXPECT_EQ(red1.Take(kQps, 70), nullptr);
  EXPECT_EQ(blue1.Left(kQps), 30u);
  EXPECT_EQ(blue1.Take(kQps, 31), &gateway);
  EXPECT_EQ(blue1.Take(kQps, 30), nullptr);
}

TEST_F(QuotaNodeTest, CommittedOfATenant_IsForAnyOfItsPools) {
  red.SetQuota(QuotaOf(40, 80));
  red1.SetQuota(QuotaOf(10, 100));
  EXPECT_EQ(blue1.Take(kQps, 60), nullptr);
  EXPECT_EQ(blue1.Take(kQps), &gateway);
  EXPECT_EQ(red2.Left(kQps), 30u) << "ten are the other pool's";
  EXPECT_EQ(red2.Take(kQps, 30), nullptr);
  EXPECT_EQ(red2.Take(kQps), &gateway);
  EXPECT_EQ(red1.Take(kQps, 10), nullptr);
}

TEST_F(QuotaNodeTest, LoweredBelowWhatIsHeld_NothingIsRevokedNothingIsGranted) {
  EXPECT_EQ(red1.Take(kQps, 50), nullptr);
  red1.SetQuota(QuotaOf(0, 20));
  EXPECT_EQ(red1.used(kQps), 50u);
  EXPECT_EQ(red1.Left(kQps), 0u);
  red1.Give(kQps, 30);
  EXPECT_EQ(red1.Take(kQps), &red1);
  red1.Give(kQps);
  EXPECT_EQ(red1.Take(kQps), nullptr);
}

TEST_F(QuotaNodeTest, TenantLoweredBelowWhatIsHeld_CommittedOfThePoolsIsStillGranted) {
  red1.SetQuota(QuotaOf(10, 100));
  EXPECT_EQ(red2.Take(kQps, 50), nullptr);
  red.SetQuota(QuotaOf(0, 20));
  EXPECT_EQ(red2.Take(kQps), &red);
  EXPECT_EQ(red1.Take(kQps, 10), nullptr);
  EXPECT_EQ(red1.Take(kQps), &red);
}

TEST_F(QuotaNodeTest, PeakBelowCommitted_CountsAsCommitted) {
  red1.SetQuota(QuotaOf(5, 2));
  EXPECT_EQ(red1.Left(kQps), 5u);
  EXPECT_EQ(red1.Take(kQps, 5), nullptr);
  EXPECT_EQ(red1.Take(kQps), &red1);
}

TEST_F(QuotaNodeTest, PoolGone_WhatItHadCommittedIsFree) {
  auto pool = std::make_unique<QuotaNode>("tenants/blue/pools/2", Level::kPool, &blue);
  pool->SetQuota(QuotaOf(90, 90));
  EXPECT_EQ(red1.Left(kQps), 10u);
  pool.reset();
  EXPECT_EQ(red1.Left(kQps), 100u);
}

TEST_F(QuotaNodeTest, Resources_AreCountedApart) {
  gateway.SetQuota({});
  EXPECT_EQ(red1.Take(Resource::kRegisteredBytes, uint64_t{1} << 50), nullptr);
  EXPECT_EQ(red1.used(kQps), 0u);
  EXPECT_EQ(red1.Left(kQps), kUnlimited);
  EXPECT_FALSE(red1.unused());
  red1.Give(Resource::kRegisteredBytes, uint64_t{1} << 50);
  EXPECT_TRUE(red1.unused());
}

// Returns the largest use of `red` that four threads see, which take 20 at a time and give them
// back while `meanwhile` runs.
uint64_t MostUsed(QuotaNode& red, std::array<QuotaNode*, 4> pools,
                  const std::function<void()>& meanwhile) {
  std::atomic<uint64_t> most{0};
  const auto take = [&](QuotaNode& pool) {
    for (int i = 0; i < 20000; ++i) {
      if (pool.Take(kQps, 20) != nullptr) continue;
      const uint64_t now = red.used(kQps);
      for (uint64_t seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
      }
      pool.Give(kQps, 20);
    }
  };
  std::vector<std::jthread> threads;
  for (QuotaNode* const pool : pools) threads.emplace_back([&take, pool] { take(*pool); });
  meanwhile();
  threads.clear();
  return most;
}

TEST_F(QuotaNodeTest, FromSeveralThreads_CountedExactly) {
  red.SetQuota(QuotaOf(0, 50));
  const uint64_t most = MostUsed(red, {&red1, &red2, &red1, &red2}, [] {});
  EXPECT_LE(most, 50u);
  EXPECT_GE(most, 20u);
  EXPECT_EQ(gateway.used(kQps), 0u);
}

// Workers take amounts while the control thread takes others and changes limits.
TEST_F(QuotaNodeTest, LimitsChangeUnderSeveralThreads_CountedExactly) {
  red.SetQuota(QuotaOf(0, 50));
  const uint64_t most = MostUsed(red, {&red1, &red2, &red1, &red2}, [this] {
    for (int i = 0; i < 1000; ++i) red1.SetQuota(QuotaOf(i % 2 == 0 ? 20 : 0, 100));
  });
  // The committed amount of one is granted even while the other holds 40 of the 50.
  EXPECT_LE(most, 40u + 20u);
  EXPECT_GE(most, 20u);
  EXPECT_EQ(gateway.used(kQps), 0u);
  red1.SetQuota(QuotaOf(0, 100));
  EXPECT_EQ(red1.Left(kQps), 50u);
  EXPECT_EQ(blue1.Left(kQps), 100u);
}

TEST_F(QuotaNodeTest, AmountsNearTheEndOfTheRange_DoNotWrapAround) {
  gateway.SetQuota({});
  blue1.SetQuota(QuotaOf(7, kUnlimited));
  EXPECT_EQ(red1.Take(kQps, kUnlimited - 10), nullptr);
  EXPECT_EQ(red1.Take(kQps, 4), &gateway);
  EXPECT_EQ(red1.Take(kQps, kUnlimited), &red1);
  EXPECT_EQ(red1.Left(kQps), 3u);
  EXPECT_EQ(blue1.Left(kQps), 10u);
}

}  // namespace
}  // namespace rocegw::tenant
