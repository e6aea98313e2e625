// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/queues/ticket_runs.h"

namespace rocegw::transport {

void TicketRuns::Add(SessionId session, uint32_t srq, uint32_t upto) {
  if (upto == known_) return;
  if (!runs_.empty() && runs_.back().srq == srq) {
    runs_.back().last = upto;
  } else {
    runs_.push_back({session, srq, upto, known_});
  }
  known_ = upto;
}

uint32_t TicketRuns::Done(uint32_t ticket) {
  size_t i = 0;
  while (i < runs_.size() && Before(runs_[i].last, ticket)) ++i;
  // The ticket belongs to an abandoned SRQ.
  if (i == runs_.size() || !Before(runs_[i].done, ticket)) return done_;
  runs_[i].done = ticket;
  const SessionId session = runs_[i].session;
  while (i-- != 0)
    if (runs_[i].session == session) runs_[i].done = runs_[i].last;
  return Settle();
}

uint32_t TicketRuns::Abandon(uint32_t srq) {
  for (size_t i = 0; i < runs_.size(); ++i)
    if (runs_[i].srq == srq) runs_[i].done = runs_[i].last;
  return Settle();
}

uint32_t TicketRuns::SrqOf(uint32_t ticket) const {
  for (size_t i = 0; i < runs_.size(); ++i)
    if (!Before(runs_[i].last, ticket)) return runs_[i].srq;
  return 0;
}

uint32_t TicketRuns::Settle() {
  while (!runs_.empty() && runs_.front().done == runs_.front().last) {
    done_ = runs_.front().last;
    runs_.pop_front();
  }
  if (!runs_.empty()) done_ = runs_.front().done;
  return done_;
}

}  // namespace rocegw::transport
