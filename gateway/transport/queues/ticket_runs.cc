// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/queues/ticket_runs.h"

namespace rocegw::transport {

void TicketRuns::Add(SessionId session, uint32_t srq, uint32_t upto) {
  if (upto == known_) return;
  if (!runs_.empty() && runs_.back().srq == srq) {
    runs_.back().last = upto;
    runs_.back().reported = false;
  } else {
    runs_.push_back({.session = session, .srq = srq, .last = upto, .done = known_});
  }
  known_ = upto;
}

size_t TicketRuns::IndexOf(uint32_t ticket) const {
  size_t begin = 0;
  for (size_t end = runs_.size(); begin < end;) {
    const size_t middle = begin + (end - begin) / 2;
    if (Before(runs_[middle].last, ticket)) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

uint32_t TicketRuns::Done(uint32_t ticket) {
  size_t i = IndexOf(ticket);
  // The ticket belongs to an abandoned SRQ.
  if (i == runs_.size() || !Before(runs_[i].done, ticket)) return done_;
  runs_[i].done = ticket;
  runs_[i].reported = ticket == runs_[i].last;
  const SessionId session = runs_[i].session;
  while (i-- != 0) {
    if (runs_[i].session != session) continue;
    if (runs_[i].reported) break;
    runs_[i].done = runs_[i].last;
    runs_[i].reported = true;
  }
  return Settle();
}

uint32_t TicketRuns::Abandon(uint32_t srq) {
  for (size_t i = 0; i < runs_.size(); ++i)
    if (runs_[i].srq == srq) runs_[i].done = runs_[i].last;
  return Settle();
}

uint32_t TicketRuns::SrqOf(uint32_t ticket) const {
  const size_t i = IndexOf(ticket);
  return i == runs_.size() ? 0 : runs_[i].srq;
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
