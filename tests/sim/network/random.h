// SPDX-License-Identifier: Apache-2.0
// Seeded random numbers, equal on every machine: xoshiro256++ (Blackman, Vigna 2019), with its
// state filled by splitmix64. Standard distributions differ between libraries; these do not. A
// value type; forks give independent streams, so that one component's draws do not shift another's.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace rocegw::sim {

// Hash: equal inputs give equal outputs, similar inputs unrelated ones.
constexpr uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) word = Mix(seed++);
  }

  uint64_t Bits() {
    const uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }
  // Returns 0 to limit - 1; 0 for limit 0.
  uint64_t Below(uint64_t limit) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(Bits()) * limit >> 64);
  }
  // Both ends included.
  uint64_t Between(uint64_t low, uint64_t high) { return low + Below(high - low + 1); }
  // Returns a number in [0, 1).
  double Unit() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }
  // Draws for every probability, including 0 and 1, so that changing one does not shift later
  // draws.
  bool Chance(double probability) { return Unit() < probability; }
  double Exponential(double mean) { return -mean * std::log1p(-Unit()); }
  Random Fork() { return Random(Bits()); }

 private:
  uint64_t state_[4];
};

}  // namespace rocegw::sim
