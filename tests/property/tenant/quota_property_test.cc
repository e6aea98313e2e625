// SPDX-License-Identifier: Apache-2.0
// Quota tree, compared with a model that recomputes all sums for each question.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gateway/tenant/quota_node.h"
#include "tests/support/random.h"

namespace rocegw::tenant {
namespace {

constexpr Resource kQps = Resource::kQps;

struct ModelNode {
  int parent = -1;
  bool pool = false;
  uint64_t used = 0;
  uint64_t committed = 0;
  uint64_t peak = 0;
};

class QuotaProperty : public ::testing::Test {
 protected:
  uint64_t Claimed(size_t n, size_t taker, uint64_t amount) const {
    if (model[n].pool) return model[n].used + (n == taker ? amount : 0);
    uint64_t sum = 0;
    for (size_t child = 0; child < model.size(); ++child) {
      if (model[child].parent != static_cast<int>(n)) continue;
      sum += std::max(Claimed(child, taker, amount), model[child].committed);
    }
    return sum;
  }
  uint64_t Claim(size_t n, size_t taker, uint64_t amount) const {
    return std::max(Claimed(n, taker, amount), model[n].committed);
  }
  // Returns the node that refuses; -1: granted.
  int Refusing(size_t pool, uint64_t amount) const {
    if (amount == 0) return -1;
    for (int n = static_cast<int>(pool); n >= 0; n = model[static_cast<size_t>(n)].parent) {
      const auto i = static_cast<size_t>(n);
      const uint64_t limit = std::max(model[i].peak, model[i].committed);
      if (Claimed(i, pool, amount) > limit) return n;
      if (Claim(i, pool, amount) == Claim(i, pool, 0)) return -1;
    }
    return -1;
  }

  void SetQuota(size_t n, uint64_t committed, uint64_t peak) {
    model[n].committed = committed;
    model[n].peak = peak;
    Quota quota;
    quota.committed[kQps] = committed;
    quota.peak[kQps] = peak;
    nodes[n]->SetQuota(quota);
  }

  void Add(int parent, Level level) {
    model.push_back({parent, level == Level::kPool});
    nodes.push_back(std::make_unique<QuotaNode>(
        std::to_string(nodes.size()), level,
        parent < 0 ? nullptr : nodes[static_cast<size_t>(parent)].get()));
    SetQuota(nodes.size() - 1, 0, 1000);
  }

  std::vector<ModelNode> model;
  std::vector<std::unique_ptr<QuotaNode>> nodes;
};

TEST_F(QuotaProperty, RandomTakesAndQuotas_AnswersAreTheModels) {
  testing::Random random{testing::TestSeed(11)};
  Add(-1, Level::kGateway);
  for (int tenant = 1; tenant <= 3; ++tenant) Add(0, Level::kTenant);
  for (int tenant = 1; tenant <= 3; ++tenant) {
    for (int pool = 0; pool < 3; ++pool) Add(tenant, Level::kPool);
  }
  int refusals[3] = {};
  for (int step = 0; step < 60000; ++step) {
    const size_t pool = random.Between(4, model.size() - 1);
    if (random.Below(20) == 0) {
      const size_t n = random.Below(model.size());
      SetQuota(n, n == 0 ? 0 : random.Below(40), random.Between(20, n == 0 ? 300 : 120));
    } else if (random.Below(5) < 3) {
      const uint64_t amount = random.Between(1, 12);
      const int expected = Refusing(pool, amount);
      const QuotaNode* const by = nodes[pool]->Take(kQps, amount);
      ASSERT_EQ(by, expected < 0 ? nullptr : nodes[static_cast<size_t>(expected)].get()) << step;
      if (by == nullptr) model[pool].used += amount;
      if (by != nullptr) ++refusals[static_cast<size_t>(by->level())];
    } else {
      const uint64_t amount = random.Below(model[pool].used + 1);
      nodes[pool]->Give(kQps, amount);
      model[pool].used -= amount;
    }
    const uint64_t left = nodes[pool]->Left(kQps);
    ASSERT_EQ(Refusing(pool, left), -1) << step;
    ASSERT_NE(Refusing(pool, left + 1), -1) << step;
    ASSERT_EQ(nodes[pool]->used(kQps), model[pool].used);
    // A pool's committed amount is always available to it.
    if (model[pool].used < model[pool].committed) {
      ASSERT_GE(left, model[pool].committed - model[pool].used) << step;
    }
  }
  for (const int count : refusals) EXPECT_GT(count, 100) << "each level had its say";
  while (!nodes.empty()) {
    nodes.back()->Give(kQps, nodes.back()->used(kQps));
    nodes.pop_back();
  }
}

// With constant quotas that fit, the gateway's capacity is never exceeded.
TEST_F(QuotaProperty, QuotasThatFit_CapacityHoldsAndCommittedIsAlwaysGranted) {
  testing::Random random{testing::TestSeed(12)};
  Add(-1, Level::kGateway);
  SetQuota(0, 0, 200);
  for (int tenant = 1; tenant <= 3; ++tenant) {
    Add(0, Level::kTenant);
    SetQuota(nodes.size() - 1, 50, 120);
  }
  for (int tenant = 1; tenant <= 3; ++tenant) {
    for (int pool = 0; pool < 3; ++pool) {
      Add(tenant, Level::kPool);
      SetQuota(nodes.size() - 1, random.Below(20), random.Between(20, 90));
    }
  }
  for (int step = 0; step < 40000; ++step) {
    const size_t pool = random.Between(4, model.size() - 1);
    if (random.Coin()) {
      const uint64_t amount = random.Between(1, 9);
      if (nodes[pool]->Take(kQps, amount) == nullptr) model[pool].used += amount;
    } else {
      const uint64_t amount = random.Below(model[pool].used + 1);
      nodes[pool]->Give(kQps, amount);
      model[pool].used -= amount;
    }
    ASSERT_LE(nodes[0]->used(kQps), 200u);
    for (size_t n = 4; n < model.size(); ++n) {
      if (model[n].used >= model[n].committed) continue;
      ASSERT_GE(nodes[n]->Left(kQps), model[n].committed - model[n].used);
    }
  }
  while (!nodes.empty()) {
    nodes.back()->Give(kQps, nodes.back()->used(kQps));
    nodes.pop_back();
  }
}

}  // namespace
}  // namespace rocegw::tenant
