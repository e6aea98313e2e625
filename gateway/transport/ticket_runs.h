// SPDX-License-Identifier: Apache-2.0
// Which tickets of a queue pair are done, when its memory operations are of several sessions: each
// session reports its own in order, and says nothing about others'. Belongs to one queue pair.
#pragma once

#include <cstdint>

#include "gateway/base/growing_ring.h"
#include "gateway/base/ids.h"

namespace rocegw::transport {

class TicketRuns {
 public:
  // Tickets behind those that are known, up to this one, are of that session and lane.
  void Add(SessionId session, uint32_t lane, uint32_t upto);
  // The session has reported it. The newest ticket up to which all are done.
  uint32_t Done(uint32_t ticket);
  // Nothing of that lane will be reported any more. As Done.
  uint32_t Abandon(uint32_t lane);
  // Whose it is; 0: nobody's that is not done.
  uint32_t LaneOf(uint32_t ticket) const;

 private:
  struct Run {
    SessionId session;
    uint32_t lane = 0;
    uint32_t last = 0;
    uint32_t done = 0;  // the newest that is
  };
  static bool Before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }
  uint32_t Settle();

  GrowingRing<Run> runs_;
  uint32_t known_ = 0;  // the newest that has an owner
  uint32_t done_ = 0;
};

}  // namespace rocegw::transport
