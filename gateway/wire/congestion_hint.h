// SPDX-License-Identifier: Apache-2.0
// Congestion hint: a path's load as a level instead of one bit. One byte, at BTH byte 4 of channel
// frames (outside of the ICRC, so switches may change it). Channel acknowledgements echo it.
// Encoding: docs/develop/congestion_control.md. Pure values; any thread.
//
//   bit 7     C: the path is congested (the BTH's FECN)
//   bit 6     I: the sender wants to send more (the BTH's BECN); cleared where the path is full
//   bits 5:0  level: 0 unknown, 1 idle .. 63 full
#pragma once

#include <cstdint>

namespace rocegw::wire {

inline constexpr uint8_t kHintCongested = 0x80;
inline constexpr uint8_t kHintIncrease = 0x40;
inline constexpr uint8_t kHintLevelMask = 0x3F;
// Steps from level 1 (idle) to level 63 (full).
inline constexpr uint32_t kHintSteps = 62;

// Returns the level of a load between 0 and `full`, rounded up so that a small load is not idle.
constexpr uint8_t HintLevel(uint64_t load, uint64_t full) {
  if (load >= full) return static_cast<uint8_t>(1 + kHintSteps);
  return static_cast<uint8_t>(1 + (load * kHintSteps + full - 1) / full);
}

// Returns a sender's hint: its wish to send more, and no level.
constexpr uint8_t MakeHint(bool wants_more) { return wants_more ? kHintIncrease : 0; }

constexpr uint8_t HintOfLevel(uint8_t level, bool increase) {
  return static_cast<uint8_t>(level | (level > 1 ? kHintCongested : 0) |
                              (increase ? kHintIncrease : 0));
}

// Returns a switch's hint for a frame that leaves a queue of `queued` bytes: idle up to `low`, full
// from `high` on. The fullest queue of a path determines the result.
constexpr uint8_t RaiseHint(uint8_t hint, uint64_t queued, uint64_t low, uint64_t high) {
  const uint8_t own = HintLevel(queued > low ? queued - low : 0, high > low ? high - low : 1);
  const auto before = static_cast<uint8_t>(hint & kHintLevelMask);
  const uint8_t level = own > before ? own : before;
  return HintOfLevel(level, (hint & kHintIncrease) != 0 && level <= kHintSteps);
}

// Receiver side: averages the hints of received frames until the next acknowledgement takes them.
// If no switch sets levels, the share of bytes marked with ECN CE replaces the level.
class HintMeter {
 public:
  void OnFrame(uint8_t hint, bool ce_marked, uint32_t bytes) {
    // Frames without payload count too. Frames after a thousand full ones without an
    // acknowledgement are ignored.
    const auto weight = static_cast<uint16_t>(1 + bytes / 64);
    if (bytes_ > UINT16_MAX - weight) return;
    bytes_ = static_cast<uint16_t>(bytes_ + weight);
    if (ce_marked) marked_ = static_cast<uint16_t>(marked_ + weight);
    if ((hint & kHintLevelMask) != 0) {
      stamped_ = static_cast<uint16_t>(stamped_ + weight);
      levels_ += weight * ((hint & kHintLevelMask) - 1u);
    }
    wanted_ = wanted_ && (hint & kHintIncrease) != 0;
  }

  // Returns the echo of the frames since the last call; 0: no frames, or unknown.
  uint8_t Take() {
    uint8_t echo = 0;
    if (stamped_ != 0) {
      echo = HintOfLevel(HintLevel(levels_, uint64_t{stamped_} * kHintSteps), wanted_);
    } else if (marked_ != 0) {
      echo = HintOfLevel(HintLevel(marked_, bytes_), wanted_);
    }
    *this = HintMeter();
    return echo;
  }
  // Writes or reads the state (gateway/hand_over).
  template <typename Stream>
  void HandOver(Stream& state) {
    auto& [levels, bytes, marked, stamped, wanted] = *this;
    state(levels, bytes, marked, stamped, wanted);
  }

 private:
  // Weights in units of 64 bytes.
  uint32_t levels_ = 0;  // sum of level times weight
  uint16_t bytes_ = 0;
  uint16_t marked_ = 0;
  uint16_t stamped_ = 0;
  bool wanted_ = true;
};

}  // namespace rocegw::wire
