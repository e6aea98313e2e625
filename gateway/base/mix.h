// SPDX-License-Identifier: Apache-2.0
// Hash that distributes a number over 64 bits, for tables and for choices that should look random.
// Not keyed: an attacker can compute collisions. Mix in a secret first if strangers choose the
// numbers.
#pragma once

#include <cstdint>

namespace rocegw {

constexpr uint64_t Mix(uint64_t x) {
  x *= 0x9E3779B97F4A7C15;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9;
  return x ^ x >> 32;
}

}  // namespace rocegw
