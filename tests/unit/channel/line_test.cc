// SPDX-License-Identifier: Apache-2.0
// Order of the queue pairs that wait for window on a channel.
#include "gateway/channel/line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace rocegw::testing::line {
namespace {

using channel::Line;

SlotHandle Qp(uint32_t index) { return {index, 1}; }

// Pops `count` times; each queue pair sends `bytes` and waits again. Returns the order.
std::vector<uint32_t> Turns(Line& line, size_t count, uint64_t bytes) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < count; ++i) {
    const SlotHandle qp = line.Pop().slot();
    out.push_back(qp.index);
    line.Charge(qp.index / 100, bytes);
    line.Push(qp.index / 100, qp);
  }
  return out;
}
using Order = std::vector<uint32_t>;

TEST(Line, Nobody_Empty) {
  Line line;
  EXPECT_TRUE(line.empty());
  line.Push(1, Qp(100));
  EXPECT_FALSE(line.empty());
  EXPECT_EQ(line.Pop().slot().index, 100u);
  EXPECT_TRUE(line.empty());
}

TEST(Line, OneTenant_QueuePairAfterQueuePair) {
  Line line;
  for (uint32_t qp : {100, 101, 102}) line.Push(1, Qp(qp));
  EXPECT_EQ(Turns(line, 7, 5000), (Order{100, 101, 102, 100, 101, 102, 100}));
}

TEST(Line, TwoTenants_ShareEquallyWhateverTheirQueuePairs) {
  Line line;
  for (uint32_t qp : {100, 101, 102, 103}) line.Push(1, Qp(qp));
  line.Push(2, Qp(200));
  EXPECT_EQ(Turns(line, 8, 1000), (Order{100, 200, 101, 200, 102, 200, 103, 200}));
}

TEST(Line, TurnsOfDifferentLength_CountAsBytes) {
  Line line;
  line.Push(1, Qp(100));
  line.Push(2, Qp(200));
  uint64_t sent[3] = {};
  for (int i = 0; i < 600; ++i) {
    const SlotHandle qp = line.Pop().slot();
    const uint32_t tenant = qp.index / 100;
    const uint64_t bytes = tenant == 1 ? 16384 : 64;
    sent[tenant] += bytes;
    line.Charge(tenant, bytes);
    line.Push(tenant, qp);
  }
  EXPECT_LE(sent[1] > sent[2] ? sent[1] - sent[2] : sent[2] - sent[1], 16384u);
}

TEST(Line, WhoComesLate_GetsNoMoreThanWhoWaits) {
  Line line;
  line.Push(1, Qp(100));
  line.Push(2, Qp(200));
  Turns(line, 100, 1000);
  line.Push(3, Qp(300));
  const Order after = Turns(line, 9, 1000);
  for (uint32_t tenant : {100u, 200u, 300u})
    EXPECT_EQ(std::count(after.begin(), after.end(), tenant), 3) << tenant;
}

TEST(Line, WhoWasServedAlone_OwesNothing) {
  Line line;
  line.Push(1, Qp(100));
  Turns(line, 50, 100000);
  line.Push(2, Qp(200));
  const Order after = Turns(line, 4, 1000);
  EXPECT_EQ(std::count(after.begin(), after.end(), 100u), 2);
}

TEST(Line, BetweenItsTurns_ATenantKeepsItsAccount) {
  Line line;
  line.Push(1, Qp(100));
  line.Push(2, Qp(200));
  ASSERT_EQ(line.Pop().slot().index, 100u);
  line.Charge(1, 50000);
  // Leaving the queue for a moment clears no debt.
  ASSERT_EQ(line.Pop().slot().index, 200u);
  line.Charge(2, 1000);
  line.Push(2, Qp(200));
  line.Push(1, Qp(100));
  EXPECT_EQ(line.Pop().slot().index, 200u);
}

// The queue is never empty meanwhile, so its account is kept; that must not be worth much.
TEST(Line, WhoWasAwayForLong_GetsNoMoreThanWhoWaits) {
  Line line;
  line.Push(1, Qp(100));
  line.Push(2, Qp(200));
  line.Push(3, Qp(300));
  while (line.Pop().slot().index != 300) {
  }
  line.Push(1, Qp(100));
  line.Push(2, Qp(200));
  Turns(line, 100, 1000);
  line.Push(3, Qp(300));
  const Order after = Turns(line, 9, 1000);
  EXPECT_EQ(std::count(after.begin(), after.end(), 300u), 3);
  line.Push(4, Qp(400));
  const Order then = Turns(line, 8, 1000);
  EXPECT_EQ(std::count(then.begin(), then.end(), 400u), 2)
      << "nor does who comes for the first time";
}

TEST(Line, ChargeOfATenantThatIsNotThere_ChangesNothing) {
  Line line;
  line.Charge(7, 1000);
  EXPECT_TRUE(line.empty());
  line.Push(1, Qp(100));
  line.Charge(7, 1000);
  EXPECT_EQ(line.Pop().slot().index, 100u);
}

}  // namespace
}  // namespace rocegw::testing::line
