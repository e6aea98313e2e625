// SPDX-License-Identifier: Apache-2.0
// Counters of the connection manager. Plain numbers of the control thread, which copies them for
// readers.
#pragma once

#include <cstdint>

namespace rocegw::cm {

struct CmCounters {
  uint64_t mads_received = 0;
  uint64_t mads_sent = 0;  // resends included
  uint64_t mads_resent = 0;
  uint64_t connects = 0;     // REQs of programs here
  uint64_t requests = 0;     // REQs delivered to programs here
  uint64_t established = 0;  // either role
  uint64_t rejected = 0;     // REJs sent
  uint64_t refused = 0;      // REJs received for attempts of programs here
  uint64_t timed_out = 0;    // attempts given up
  uint64_t disconnected = 0;
  uint64_t stale = 0;  // REQs for a QPN that an older connection still used
  uint64_t backlog_full = 0;
};

}  // namespace rocegw::cm
