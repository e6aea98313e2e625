// SPDX-License-Identifier: Apache-2.0
// Tickets of several sessions, compared with a model of single tickets: done is the longest prefix
// that the sessions have reported, whatever the order of reports and removals.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "gateway/transport/queues/ticket_runs.h"
#include "tests/support/random.h"

namespace rocegw::transport {
namespace {

using testing::Random;
using testing::TestSeed;

struct Ticket {
  uint32_t number;
  uint32_t session;
  uint32_t srq;
  bool done = false;
};

uint32_t DoneOf(const std::vector<Ticket>& tickets, uint32_t first) {
  uint32_t done = first;
  for (const Ticket& ticket : tickets) {
    if (!ticket.done) break;
    done = ticket.number;
  }
  return done;
}

TEST(TicketRunsProperty, DoneIsWhatAllHaveReported) {
  Random random(TestSeed(91));
  for (int round = 0; round < 400; ++round) {
    TicketRuns runs;
    std::vector<Ticket> tickets;
    std::vector<uint32_t> gone;
    uint32_t last = 0;
    for (int step = 0; step < 60; ++step) {
      const size_t action = random.Below(10);
      if (action < 5) {
        // SRQs 1 to 4, two of each session.
        const uint32_t srq = random.Between(1, 4);
        if (std::ranges::find(gone, srq) != gone.end()) continue;
        for (size_t count = random.Between(1, 4); count != 0; --count)
          tickets.push_back({++last, 1 + srq % 2, srq});
        runs.Add(SessionId{1 + srq % 2}, srq, last);
      } else if (action < 9) {
        const size_t at = tickets.empty() ? 0 : random.Below(tickets.size());
        if (tickets.empty() || tickets[at].done) continue;
        for (size_t i = 0; i <= at; ++i)
          if (tickets[i].session == tickets[at].session) tickets[i].done = true;
        ASSERT_EQ(runs.Done(tickets[at].number), DoneOf(tickets, 0)) << round << " " << step;
      } else {
        const uint32_t srq = random.Between(1, 4);
        gone.push_back(srq);
        for (Ticket& ticket : tickets)
          if (ticket.srq == srq) ticket.done = true;
        ASSERT_EQ(runs.Abandon(srq), DoneOf(tickets, 0)) << round << " " << step;
      }
      for (const Ticket& ticket : tickets) {
        if (ticket.done || ticket.number != DoneOf(tickets, 0) + 1) continue;
        ASSERT_EQ(runs.SrqOf(ticket.number), ticket.srq);
      }
    }
  }
}

}  // namespace
}  // namespace rocegw::transport
