// SPDX-License-Identifier: Apache-2.0
// Packet sequence numbers: 24-bit serial arithmetic (IBTA 9.7.2). Only this file compares PSNs: a
// PSN is "after" another if it is less than 2^23 ahead.
#pragma once

#include <cstdint>

namespace rocegw {

inline constexpr uint32_t kPsnMask = 0xFFFFFF;
// Largest span of PSNs in which comparisons are unambiguous.
inline constexpr uint32_t kPsnWindow = 1u << 23;

struct Psn {
  uint32_t value = 0;

  constexpr Psn() = default;
  constexpr explicit Psn(uint32_t v) : value(v & kPsnMask) {}

  constexpr Psn operator+(uint32_t n) const { return Psn(value + n); }
  constexpr Psn operator-(uint32_t n) const { return Psn(value - n); }
  constexpr bool operator==(const Psn&) const = default;
};

// Returns a - b as a signed distance in [-2^23, 2^23).
constexpr int32_t PsnDistance(Psn a, Psn b) {
  return static_cast<int32_t>((a.value - b.value) << 8) >> 8;
}
constexpr bool PsnBefore(Psn a, Psn b) { return PsnDistance(a, b) < 0; }
constexpr bool PsnAfter(Psn a, Psn b) { return PsnDistance(a, b) > 0; }

}  // namespace rocegw
