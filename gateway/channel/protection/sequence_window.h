// SPDX-License-Identifier: Apache-2.0
// Sequence numbers of the sealed datagrams that arrived on a channel: each is accepted once, in any
// order within 4,096 (RFC 6479). A number is checked first and taken once the datagram's tag was
// right, so that a forged datagram moves nothing. Plain data.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::channel {

class SequenceWindow {
 public:
  // A datagram that is overtaken by so many others counts as lost. A channel has at most as many in
  // flight (kMaxFlowPackets), also while it changes its path.
  static constexpr uint64_t kWidth = 4096;

  // Returns true if the number was not taken and does not lie too far behind.
  bool IsNew(uint64_t sequence) const {
    if (sequence > highest_) return true;
    return highest_ - sequence < kWidth && (WordOf(sequence) & BitOf(sequence)) == 0;
  }
  // Takes a number for which IsNew holds.
  void Take(uint64_t sequence) {
    if (sequence > highest_) {
      const uint64_t ahead = std::min<uint64_t>(sequence / 64 - highest_ / 64, kWords);
      for (uint64_t i = 1; i <= ahead; ++i) taken_[(highest_ / 64 + i) % kWords] = 0;
      highest_ = sequence;
    }
    taken_[sequence / 64 % kWords] |= BitOf(sequence);
  }
  uint64_t highest() const { return highest_; }

  // Writes or reads the state (hand_over/protection_state.cc).
  void HandOver(hand_over::StateStream& state);

 private:
  // Has one word more than the window is wide, so that a word is cleared as a whole.
  static constexpr size_t kWords = kWidth / 64 + 1;

  uint64_t WordOf(uint64_t sequence) const { return taken_[sequence / 64 % kWords]; }
  static uint64_t BitOf(uint64_t sequence) { return uint64_t{1} << sequence % 64; }

  uint64_t highest_ = 0;
  std::array<uint64_t, kWords> taken_{};
};

}  // namespace rocegw::channel
