// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/donor/fair_turns.h"

#include <gtest/gtest.h>

#include <vector>

namespace rocegw::far {
namespace {

// Sessions that always have a message; each turn of a session costs what `cost` says.
std::map<uint64_t, uint64_t> TimeOf(const std::map<uint64_t, uint64_t>& cost, int turns) {
  FairTurns order;
  std::map<uint64_t, uint64_t> time;
  for (const auto& [session, each] : cost) order.Add(session);
  for (int turn = 0; turn < turns; ++turn) {
    const uint64_t session = *order.Take();
    time[session] += cost.at(session);
    order.Worked(session, cost.at(session));
    order.Add(session);
  }
  return time;
}

TEST(FairTurns, SessionsGetTheSameTimeWhateverTheirMessagesCost) {
  const auto time = TimeOf({{1, 1000}, {2, 10}, {3, 50}}, 100000);
  EXPECT_NEAR(static_cast<double>(time.at(1)), static_cast<double>(time.at(2)), 2000);
  EXPECT_NEAR(static_cast<double>(time.at(1)), static_cast<double>(time.at(3)), 2000);
}

TEST(FairTurns, ASessionWithOneMessageWaitsForOneOfAnotherAtMost) {
  FairTurns order;
  order.Add(1);
  for (int message = 0; message < 100; ++message) {
    ASSERT_EQ(order.Take(), 1u);
    order.Worked(1, 1000000);
    order.Add(1);
  }
  // The other one comes while a message of the first is handled, which has 15 more.
  ASSERT_EQ(order.Take(), 1u);
  order.Add(2);
  order.Worked(1, 1000000);
  order.Add(1);
  EXPECT_EQ(order.Take(), 2u);
}

TEST(FairTurns, ManySessionsThatFloodTakeTurnsWithOneThatDoesNot) {
  FairTurns order;
  for (uint64_t session = 1; session <= 85; ++session) order.Add(session);
  for (int message = 0; message < 850; ++message) {
    const uint64_t session = *order.Take();
    order.Worked(session, 1000);
    order.Add(session);
  }
  order.Add(100);
  int before = 0;
  while (*order.Take() != 100) {
    ++before;
    ASSERT_LE(before, 85);
  }
}

TEST(FairTurns, WhoWasIdleHasNoClaimOnThePast) {
  FairTurns order;
  order.Add(1);
  order.Add(2);
  for (int message = 0; message < 1000; ++message) {
    const uint64_t session = *order.Take();
    order.Worked(session, 1000);
    if (session == 1) order.Add(1);
  }
  order.Add(2);
  std::vector<int> turns(3);
  for (int message = 0; message < 100; ++message) {
    const uint64_t session = *order.Take();
    turns[session]++;
    order.Worked(session, 1000);
    order.Add(session);
  }
  EXPECT_NEAR(turns[1], turns[2], 2);
}

TEST(FairTurns, ASessionThatHasEndedHasNoTurn) {
  FairTurns order;
  order.Add(1);
  order.Add(2);
  order.Add(2);
  order.Remove(1);
  EXPECT_EQ(order.Take(), 2u);
  EXPECT_EQ(order.Take(), std::nullopt);
  EXPECT_TRUE(order.empty());
}

}  // namespace
}  // namespace rocegw::far
