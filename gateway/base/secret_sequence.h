// SPDX-License-Identifier: Apache-2.0
// Numbers that nobody who has seen some of them can guess the others of: SipHash-2-4 of a counter
// under a secret key (Aumasson and Bernstein, 2012). For code that has no kernel to ask. Not thread
// safe.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace rocegw {

using SecretKey = std::array<uint64_t, 2>;

// SipHash-2-4 of one 64-bit word.
constexpr uint64_t SipHash(const SecretKey& key, uint64_t word) {
  uint64_t v0 = key[0] ^ 0x736f6d6570736575;
  uint64_t v1 = key[1] ^ 0x646f72616e646f6d;
  uint64_t v2 = key[0] ^ 0x6c7967656e657261;
  uint64_t v3 = key[1] ^ 0x7465646279746573;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v1 = std::rotl(v1, 13) ^ v0;
      v0 = std::rotl(v0, 32);
      v2 += v3;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1;
      v1 = std::rotl(v1, 17) ^ v2;
      v2 = std::rotl(v2, 32);
    }
  };
  const auto absorb = [&](uint64_t m) {
    v3 ^= m;
    rounds(2);
    v0 ^= m;
  };
  absorb(word);
  absorb(uint64_t{8} << 56);  // the length, in bytes
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

class SecretSequence {
 public:
  explicit SecretSequence(const SecretKey& key) : key_(key) {}
  uint64_t Next() { return SipHash(key_, counter_++); }

 private:
  SecretKey key_;
  uint64_t counter_ = 0;
};

}  // namespace rocegw
