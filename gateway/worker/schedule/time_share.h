// SPDX-License-Identifier: Apache-2.0
// Division of time by weight among users that run one after the other: tenants of a worker, and
// pools of a tenant. Spent time is handed out again in parts. A user that leaves most of its part
// unused gets 1.5 times its need, and the rest goes to waiting users. A user in debt also waits
// while another has time left but is idle just now; otherwise a program that posts its next request
// only after a completion would get less than its part. This wait is limited: idle time of the
// worker is given to the waiting users. All times are nanoseconds. Belongs to the scheduler
// (scheduler.h).
#pragma once

#include <cstdint>
#include <span>

namespace rocegw::worker {

struct TimeShare {
  static constexpr uint32_t kWhole = 1u << 16;

  uint32_t weight = 1;
  int64_t credit = 0;      // left; negative: used in advance
  int64_t given = 0;       // by the last HandOut, of the spent time
  int64_t idle = 0;        // by the last HandOut, of the idle time, saved or not
  bool waits = false;      // has work now
  int64_t used = 0;        // since its need was measured
  bool waited = false;     // has waited for others since then, so it needs more than it used
  uint32_t need = kWhole;  // unit: 1/kWhole
  uint32_t part = 0;       // unit: 1/kWhole

  void Wait() {
    waits = true;
    waited |= credit <= 0;
  }
};

// Computes new parts. `learn`: each need is set to what was used since the last time.
void Divide(std::span<TimeShare* const> among, bool learn);
// Hands out `spent`, the time used by all, and `idle`, time that was unused although a user waited.
void HandOut(std::span<TimeShare* const> among, int64_t spent, int64_t idle);

}  // namespace rocegw::worker
