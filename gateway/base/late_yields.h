// SPDX-License-Identifier: Apache-2.0
// Estimate, from the duration of yields, of whether a thread shares its core. A yield that returns
// late gave the core to a thread that does not yield, such as a program that spins on its memory.
// Then it is better to sleep than to yield for a while: a woken thread gets the core at once, a
// thread that yielded waits for a scheduler slice to end. Testing whether the core is still shared
// costs such a slice, so each late yield soon after another doubles that while. Belongs to one
// thread.
#pragma once

#include <algorithm>

#include "gateway/base/time.h"

namespace rocegw {

class LateYields {
 public:
  // Returns true if the thread should sleep instead of yield.
  bool crowded(TimePoint now) const { return now < until_; }

  // Records that the thread yielded at `before` and ran again at `after`.
  void OnYield(TimePoint before, TimePoint after) {
    if (after - before <= kLate) return;
    const bool soon = after - until_ < while_ * 2;
    while_ = soon ? std::min(while_ * 2, kLongest) : kShortest;
    until_ = after + while_;
  }

  // Longer than any yield to no thread, or to threads that yield as well.
  static constexpr Duration kLate = Microseconds(100);
  static constexpr Duration kShortest = Milliseconds(20);
  static constexpr Duration kLongest = Milliseconds(640);

 private:
  Duration while_ = kShortest;
  TimePoint until_{-kLongest.ns * 4};
};

}  // namespace rocegw
