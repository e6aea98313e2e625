// SPDX-License-Identifier: Apache-2.0
// Division of time by weight among several that use it one after the other: tenants of a worker,
// and pools of a tenant. What was spent is handed out again in parts. Who leaves most of its part
// unused gets what it needs and half as much again, and the rest goes to those who wait. Who is in
// debt waits while another has time left and has nothing to do just now: a program that posts the
// next request when one is complete would get less than its part otherwise. It waits for no longer
// than the others could have used: time in which the worker had nothing to do is given to those who
// wait. All times in nanoseconds. Owner: the scheduler (scheduler.h).
#pragma once

#include <cstdint>
#include <span>

namespace rocegw::worker {

struct TimeShare {
  static constexpr uint32_t kWhole = 1u << 16;

  uint32_t weight = 1;
  int64_t credit = 0;      // left; negative: used ahead
  int64_t given = 0;       // by the last HandOut, of what was spent
  int64_t idle = 0;        // by it, of what nobody used, whether it could be saved or not
  bool waits = false;      // has work now
  int64_t used = 0;        // since its need was learned
  bool waited = false;     // in that time, for others: it needs more than it used
  uint32_t need = kWhole;  // of kWhole
  uint32_t part = 0;       // of kWhole

  void Wait() {
    waits = true;
    waited |= credit <= 0;
  }
};

// New parts. `learn`: what each has used since the last time is what it needs.
void Divide(std::span<TimeShare* const> among, bool learn);
// `spent` by all of them; `idle`: that nobody used although somebody waited.
void HandOut(std::span<TimeShare* const> among, int64_t spent, int64_t idle);

}  // namespace rocegw::worker
