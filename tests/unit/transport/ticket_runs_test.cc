// SPDX-License-Identifier: Apache-2.0
// Tickets of several sessions' memory operations, which each session reports in its own order.
#include "gateway/transport/queues/ticket_runs.h"

#include <gtest/gtest.h>

namespace rocegw::transport {
namespace {

constexpr SessionId kOne{1};
constexpr SessionId kTwo{2};

TEST(TicketRuns, OneSession_IsDoneAsItReports) {
  TicketRuns runs;
  runs.Add(kOne, 7, 3);
  runs.Add(kOne, 7, 5);
  EXPECT_EQ(runs.SrqOf(4), 7u);
  EXPECT_EQ(runs.Done(2), 2u);
  EXPECT_EQ(runs.Done(5), 5u);
  EXPECT_EQ(runs.SrqOf(5), 0u);
}

TEST(TicketRuns, LaterOnesOfAnotherSession_WaitForTheOldest) {
  TicketRuns runs;
  runs.Add(kOne, 7, 2);
  runs.Add(kTwo, 8, 4);
  runs.Add(kOne, 7, 6);
  EXPECT_EQ(runs.Done(4), 0u);
  EXPECT_EQ(runs.Done(1), 1u);
  EXPECT_EQ(runs.Done(2), 4u);
  EXPECT_EQ(runs.Done(6), 6u);
}

TEST(TicketRuns, Report_IsOfAllThatTheSessionHasBefore) {
  TicketRuns runs;
  runs.Add(kOne, 7, 2);
  runs.Add(kTwo, 8, 3);
  runs.Add(kOne, 9, 5);
  EXPECT_EQ(runs.Done(5), 2u) << "of one session, whichever call queue; the other has said nothing";
  EXPECT_EQ(runs.Done(3), 5u);
}

TEST(TicketRuns, AbandonedLane_IsNotWaitedFor) {
  TicketRuns runs;
  runs.Add(kOne, 7, 2);
  runs.Add(kTwo, 8, 3);
  EXPECT_EQ(runs.Done(3), 0u);
  EXPECT_EQ(runs.Abandon(7), 3u);
  EXPECT_EQ(runs.Done(1), 3u) << "a late report says nothing";
}

// Runs of a removed queue say nothing about earlier runs of the same session.
TEST(TicketRuns, AbandonedRun_DoesNotVouchForEarlierOnes) {
  TicketRuns runs;
  runs.Add(kTwo, 9, 1);
  runs.Add(kOne, 7, 2);
  runs.Add(kOne, 8, 3);
  runs.Add(kOne, 7, 4);
  EXPECT_EQ(runs.Abandon(8), 0u);
  EXPECT_EQ(runs.Done(4), 0u);
  EXPECT_EQ(runs.Done(1), 4u);
}

// A session that reports nothing makes the others' runs pile up; a report visits few of them.
TEST(TicketRuns, ManyRunsBehindABlockedOne_AreReportedInOrder) {
  TicketRuns runs;
  runs.Add(kOne, 7, 1);
  constexpr uint32_t kRuns = 200'000;
  for (uint32_t ticket = 2; ticket < kRuns; ++ticket) {
    runs.Add(kTwo, 8 + ticket % 2, ticket);
    ASSERT_EQ(runs.Done(ticket), 0u);
    ASSERT_EQ(runs.SrqOf(ticket), 8 + ticket % 2);
  }
  EXPECT_EQ(runs.Done(1), kRuns - 1);
}

TEST(TicketRuns, GoRound) {
  TicketRuns runs;
  uint32_t ticket = 0;
  for (uint32_t step : {0x40000000u, 0x3FFFFFFFu, 0x40000000u, 0x40000005u}) {
    ticket += step;
    runs.Add(kOne, 1, ticket);
    EXPECT_EQ(runs.Done(ticket), ticket);
  }
}

}  // namespace
}  // namespace rocegw::transport
