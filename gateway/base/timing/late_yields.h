// SPDX-License-Identifier: Apache-2.0
// Estimate, from the duration of yields, of whether a thread shares its core. A yield that returns
// late gave the core to a thread that does not yield, such as a program that spins on its memory.
// Then it is better to sleep than to yield for a while: a woken thread gets the core at once, a
// thread that yielded waits for a scheduler slice to end. Testing whether the core is still shared
// costs such a slice, so each late yield soon after another doubles that while. Belongs to one
// thread.
#pragma once

#include "gateway/base/time.h"

namespace rocegw {

class LateYields {
 public:
  // Longer than any yield to no thread, or to threads that yield as well.
  static constexpr Duration kLate = Microseconds(100);
  static constexpr Duration kShortest = Milliseconds(20);
  static constexpr Duration kLongest = Milliseconds(640);

  // `late`: the longest yield that shows no other thread. `shortest`, `longest`: how long a late
  // yield counts.
  constexpr explicit LateYields(Duration late = kLate, Duration shortest = kShortest,
                                Duration longest = kLongest)
      : late_(late),
        shortest_(shortest),
        longest_(longest),
        while_(shortest),
        until_{-longest.ns * 4} {}

  // Returns true if the thread should sleep instead of yield.
  bool crowded(TimePoint now) const { return now < until_; }

  // Records that the thread yielded at `before` and ran again at `after`.
  void OnYield(TimePoint before, TimePoint after) {
    if (after - before <= late_) return;
    const bool soon = after - until_ < while_ * 2;
    if (!soon) {
      while_ = shortest_;
    } else {
      while_ = while_ * 2 < longest_ ? while_ * 2 : longest_;
    }
    until_ = after + while_;
  }

 private:
  Duration late_;
  Duration shortest_;
  Duration longest_;
  Duration while_;
  TimePoint until_;
};

}  // namespace rocegw
