// SPDX-License-Identifier: Apache-2.0
// Order of the queue pairs that wait for window on a channel.
#include "gateway/channel/wait_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace rocegw::testing::wait_queue {
namespace {

using channel::WaitQueue;

SlotHandle Qp(uint32_t index) { return {index, 1}; }

// Pops `count` times; each queue pair sends `bytes` and waits again. Returns the order.
std::vector<uint32_t> Turns(WaitQueue& queue, size_t count, uint64_t bytes) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < count; ++i) {
    const SlotHandle qp = queue.Pop().slot();
    out.push_back(qp.index);
    queue.Charge(qp.index / 100, bytes);
    queue.Push(qp.index / 100, qp);
  }
  return out;
}
using Order = std::vector<uint32_t>;

TEST(WaitQueue, Nobody_Empty) {
  WaitQueue queue;
  EXPECT_TRUE(queue.empty());
  queue.Push(1, Qp(100));
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(queue.Pop().slot().index, 100u);
  EXPECT_TRUE(queue.empty());
}

TEST(WaitQueue, OneTenant_QueuePairAfterQueuePair) {
  WaitQueue queue;
  for (uint32_t qp : {100, 101, 102}) queue.Push(1, Qp(qp));
  EXPECT_EQ(Turns(queue, 7, 5000), (Order{100, 101, 102, 100, 101, 102, 100}));
}

TEST(WaitQueue, TwoTenants_ShareEquallyWhateverTheirQueuePairs) {
  WaitQueue queue;
  for (uint32_t qp : {100, 101, 102, 103}) queue.Push(1, Qp(qp));
  queue.Push(2, Qp(200));
  EXPECT_EQ(Turns(queue, 8, 1000), (Order{100, 200, 101, 200, 102, 200, 103, 200}));
}

TEST(WaitQueue, TurnsOfDifferentLength_CountAsBytes) {
  WaitQueue queue;
  queue.Push(1, Qp(100));
  queue.Push(2, Qp(200));
  uint64_t sent[3] = {};
  for (int i = 0; i < 600; ++i) {
    const SlotHandle qp = queue.Pop().slot();
    const uint32_t tenant = qp.index / 100;
    const uint64_t bytes = tenant == 1 ? 16384 : 64;
    sent[tenant] += bytes;
    queue.Charge(tenant, bytes);
    queue.Push(tenant, qp);
  }
  EXPECT_LE(sent[1] > sent[2] ? sent[1] - sent[2] : sent[2] - sent[1], 16384u);
}

TEST(WaitQueue, WhoComesLate_GetsNoMoreThanWhoWaits) {
  WaitQueue queue;
  queue.Push(1, Qp(100));
  queue.Push(2, Qp(200));
  Turns(queue, 100, 1000);
  queue.Push(3, Qp(300));
  const Order after = Turns(queue, 9, 1000);
  for (uint32_t tenant : {100u, 200u, 300u})
    EXPECT_EQ(std::count(after.begin(), after.end(), tenant), 3) << tenant;
}

TEST(WaitQueue, WhoWasServedAlone_OwesNothing) {
  WaitQueue queue;
  queue.Push(1, Qp(100));
  Turns(queue, 50, 100000);
  queue.Push(2, Qp(200));
  const Order after = Turns(queue, 4, 1000);
  EXPECT_EQ(std::count(after.begin(), after.end(), 100u), 2);
}

TEST(WaitQueue, BetweenItsTurns_ATenantKeepsItsAccount) {
  WaitQueue queue;
  queue.Push(1, Qp(100));
  queue.Push(2, Qp(200));
  ASSERT_EQ(queue.Pop().slot().index, 100u);
  queue.Charge(1, 50000);
  // Leaving the queue for a moment clears no debt.
  ASSERT_EQ(queue.Pop().slot().index, 200u);
  queue.Charge(2, 1000);
  queue.Push(2, Qp(200));
  queue.Push(1, Qp(100));
  EXPECT_EQ(queue.Pop().slot().index, 200u);
}

// The queue is never empty meanwhile, so its account is kept; that must not be worth much.
TEST(WaitQueue, WhoWasAwayForLong_GetsNoMoreThanWhoWaits) {
  WaitQueue queue;
  queue.Push(1, Qp(100));
  queue.Push(2, Qp(200));
  queue.Push(3, Qp(300));
  while (queue.Pop().slot().index != 300) {
  }
  queue.Push(1, Qp(100));
  queue.Push(2, Qp(200));
  Turns(queue, 100, 1000);
  queue.Push(3, Qp(300));
  const Order after = Turns(queue, 9, 1000);
  EXPECT_EQ(std::count(after.begin(), after.end(), 300u), 3);
  queue.Push(4, Qp(400));
  const Order then = Turns(queue, 8, 1000);
  EXPECT_EQ(std::count(then.begin(), then.end(), 400u), 2)
      << "nor does who comes for the first time";
}

TEST(WaitQueue, ChargeOfATenantThatIsNotThere_ChangesNothing) {
  WaitQueue queue;
  queue.Charge(7, 1000);
  EXPECT_TRUE(queue.empty());
  queue.Push(1, Qp(100));
  queue.Charge(7, 1000);
  EXPECT_EQ(queue.Pop().slot().index, 100u);
}

}  // namespace
}  // namespace rocegw::testing::wait_queue
