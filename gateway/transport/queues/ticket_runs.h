// SPDX-License-Identifier: Apache-2.0
// Done tickets of a queue pair whose memory operations belong to several sessions (XRC). Each
// session reports its own tickets in order, independently of the others. Belongs to one queue pair.
#pragma once

#include <cstdint>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/base/ids.h"

namespace rocegw::transport {

class TicketRuns {
 public:
  // Assigns the tickets after the newest known one, up to `upto`, to the session and SRQ.
  void Add(SessionId session, uint32_t srq, uint32_t upto);
  // Records that the session reported the ticket. Returns the newest ticket up to which all are
  // done.
  uint32_t Done(uint32_t ticket);
  // Counts the SRQ's tickets as done: no session will report them any more. Returns as Done does.
  uint32_t Abandon(uint32_t srq);
  // Returns the SRQ of the ticket; 0 if the ticket is settled or unknown.
  uint32_t SrqOf(uint32_t ticket) const;
  // Writes or reads the state while all tickets are settled.
  template <typename Stream>
  void HandOver(Stream& state) {
    auto& [runs, known, done] = *this;
    state.Require(runs.empty(), "memory operations are outstanding");
    state(known, done);
  }

 private:
  struct Run {
    SessionId session;
    uint32_t srq = 0;
    uint32_t last = 0;
    uint32_t done = 0;  // newest ticket that is done
    // The session reported the last ticket, so all its earlier runs are done.
    bool reported = false;
  };
  static bool Before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }
  // Returns the index of the run with that ticket; the number of runs if it is newer than all.
  size_t IndexOf(uint32_t ticket) const;
  uint32_t Settle();

  GrowingRing<Run> runs_;
  uint32_t known_ = 0;  // newest ticket that has an owner
  uint32_t done_ = 0;
};

}  // namespace rocegw::transport
