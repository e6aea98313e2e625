// SPDX-License-Identifier: Apache-2.0
// Seeded random values for property tests. The seed is printed, and ROCEGW_TEST_SEED=n repeats a
// run.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace rocegw::testing {

inline uint64_t TestSeed(uint64_t otherwise) {
  const char* text = std::getenv("ROCEGW_TEST_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  uint64_t Bits() { return engine_(); }
  template <typename T>
  T Value() {
    return static_cast<T>(engine_());
  }
  bool Coin() { return (engine_() & 1) != 0; }
  // Returns a value from 0 to limit - 1.
  size_t Below(size_t limit) { return static_cast<size_t>(engine_() % limit); }
  // Returns a value from `low` to `high`, both included.
  size_t Between(size_t low, size_t high) { return low + Below(high - low + 1); }
  std::vector<uint8_t> Bytes(size_t count) {
    std::vector<uint8_t> bytes(count);
    for (uint8_t& byte : bytes) byte = Value<uint8_t>();
    return bytes;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace rocegw::testing
