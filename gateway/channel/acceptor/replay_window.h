// SPDX-License-Identifier: Apache-2.0
// Sequence numbers of a peer's tagged control packets: each is accepted once, in any order within
// 64 (the window of RFC 4303, 3.4.3). Plain data. Belongs to a ChannelSet.
#pragma once

#include <cstdint>

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::channel {

class ReplayWindow {
 public:
  static constexpr uint64_t kWidth = 64;

  // Accepts a number. Returns false if it was accepted before or lies too far behind.
  bool Take(uint64_t sequence) {
    if (sequence > highest_) {
      const uint64_t ahead = sequence - highest_;
      taken_ = ahead >= kWidth ? 0 : taken_ << ahead;
      taken_ |= 1;
      highest_ = sequence;
      return true;
    }
    const uint64_t behind = highest_ - sequence;
    if (behind >= kWidth || (taken_ >> behind & 1) != 0) return false;
    taken_ |= uint64_t{1} << behind;
    return true;
  }
  // Writes or reads the state (gateway/hand_over).
  void HandOver(hand_over::StateStream& state);

 private:
  uint64_t highest_ = 0;
  uint64_t taken_ = 1;  // bit n: the number n below the highest; number 0 is never sent
};

}  // namespace rocegw::channel
