// SPDX-License-Identifier: Apache-2.0
// Start-time fairness of a channel's wait queue, compared with an independent model. While two
// tenants both wait, their sent bytes differ by at most two quanta; no queue pair is lost or
// duplicated, and queue pairs of one tenant keep their order.
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "gateway/channel/wait_queue.h"
#include "tests/support/random.h"

namespace rocegw::testing {
namespace {

constexpr uint32_t kTenants = 4;
constexpr uint64_t kTurn = 16 * 1024;

TEST(WaitQueueProperty, RandomComingAndGoing_FairOverEveryStretch) {
  for (uint64_t round = 0; round < 300; ++round) {
    const uint64_t seed = 4000 + round;
    Random random(round == 0 ? TestSeed(seed) : seed);
    channel::WaitQueue queue;
    std::map<uint32_t, std::deque<uint32_t>> waiting;  // by tenant
    // Bytes of each of a pair of tenants since both wait.
    std::map<std::pair<uint32_t, uint32_t>, std::pair<uint64_t, uint64_t>> sent;
    uint32_t next_qp = 0;
    const auto push = [&](uint32_t tenant, uint32_t qp) {
      queue.Push(tenant, SlotHandle{qp, tenant});
      waiting[tenant].push_back(qp);
    };
    for (int step = 0; step < 400; ++step) {
      if (random.Below(4) == 0) {
        push(static_cast<uint32_t>(random.Below(kTenants)), next_qp++);
        continue;
      }
      if (queue.empty()) continue;
      const SlotHandle turn = queue.Pop().slot();
      const uint32_t tenant = turn.generation;
      ASSERT_FALSE(waiting[tenant].empty()) << "seed " << seed;
      ASSERT_EQ(waiting[tenant].front(), turn.index) << "seed " << seed;
      waiting[tenant].pop_front();
      const uint64_t bytes = random.Between(1, kTurn);
      queue.Charge(tenant, bytes);
      // The queue pair waits again, or has nothing to send for now.
      if (random.Below(3) != 0) push(tenant, turn.index);
      for (uint32_t a = 0; a < kTenants; ++a) {
        for (uint32_t b = a + 1; b < kTenants; ++b) {
          auto& [of_a, of_b] = sent[{a, b}];
          if (a == tenant) of_a += bytes;
          if (b == tenant) of_b += bytes;
          if (waiting[a].empty() || waiting[b].empty()) {
            of_a = of_b = 0;
            continue;
          }
          const uint64_t apart = of_a > of_b ? of_a - of_b : of_b - of_a;
          ASSERT_LE(apart, 2 * kTurn) << "seed " << seed << " step " << step;
        }
      }
    }
    size_t left = 0;
    for (const auto& [tenant, qps] : waiting) left += qps.size();
    for (; left > 0; --left) {
      ASSERT_FALSE(queue.empty()) << "seed " << seed;
      queue.Pop();
    }
    EXPECT_TRUE(queue.empty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace rocegw::testing
