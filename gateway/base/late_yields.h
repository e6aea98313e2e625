// SPDX-License-Identifier: Apache-2.0
// What yields tell about the core that a thread runs on. One that comes back late gave the core to
// somebody who does not yield, such as a program that spins on its memory; for a while it is better
// to sleep than to yield: who is woken gets the core at once, who has yielded waits for a slice of
// the scheduler to end. To find out whether others still want the core costs such a slice, so each
// late yield that soon follows another one makes the while twice as long. One thread's.
#pragma once

#include <algorithm>

#include "gateway/base/time.h"

namespace rocegw {

class LateYields {
 public:
  // Better sleep than yield.
  bool crowded(TimePoint now) const { return now < until_; }

  // The thread yielded at `before` and had a core again at `after`.
  void OnYield(TimePoint before, TimePoint after) {
    if (after - before <= kLate) return;
    const bool soon = after - until_ < while_ * 2;
    while_ = soon ? std::min(while_ * 2, kLongest) : kShortest;
    until_ = after + while_;
  }

  // Longer than a yield takes that gives the core to nobody, or to others that yield.
  static constexpr Duration kLate = Microseconds(100);
  static constexpr Duration kShortest = Milliseconds(20);
  static constexpr Duration kLongest = Milliseconds(640);

 private:
  Duration while_ = kShortest;
  TimePoint until_{-kLongest.ns * 4};
};

}  // namespace rocegw
