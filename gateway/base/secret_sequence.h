// SPDX-License-Identifier: Apache-2.0
// Sequence of numbers of which known ones do not reveal the others: SipHash-2-4 of a counter under
// a secret key (Aumasson and Bernstein, 2012). For code without access to the kernel's random
// numbers. Not thread-safe.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rocegw {

using SecretKey = std::array<uint64_t, 2>;

// State of SipHash-2-4, which takes its input word by word (little endian).
class SipState {
 public:
  constexpr explicit SipState(const SecretKey& key)
      : v0_(key[0] ^ 0x736f6d6570736575),
        v1_(key[1] ^ 0x646f72616e646f6d),
        v2_(key[0] ^ 0x6c7967656e657261),
        v3_(key[1] ^ 0x7465646279746573) {}

  constexpr void Absorb(uint64_t word) {
    v3_ ^= word;
    Rounds(2);
    v0_ ^= word;
  }
  // Returns the hash. `last`: the remaining input bytes, with the input length in the highest byte.
  constexpr uint64_t Finish(uint64_t last) {
    Absorb(last);
    v2_ ^= 0xff;
    Rounds(4);
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  constexpr void Rounds(int count) {
    for (int i = 0; i < count; ++i) {
      v0_ += v1_;
      v1_ = std::rotl(v1_, 13) ^ v0_;
      v0_ = std::rotl(v0_, 32);
      v2_ += v3_;
      v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ += v3_;
      v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ += v1_;
      v1_ = std::rotl(v1_, 17) ^ v2_;
      v2_ = std::rotl(v2_, 32);
    }
  }

  uint64_t v0_;
  uint64_t v1_;
  uint64_t v2_;
  uint64_t v3_;
};

// Returns SipHash-2-4 of one 64-bit word.
constexpr uint64_t SipHash(const SecretKey& key, uint64_t word) {
  SipState state(key);
  state.Absorb(word);
  return state.Finish(uint64_t{8} << 56);
}

// Returns SipHash-2-4 of bytes.
constexpr uint64_t SipHash(const SecretKey& key, std::span<const uint8_t> bytes) {
  SipState state(key);
  uint64_t word = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    word |= uint64_t{bytes[i]} << 8 * (i % 8);
    if (i % 8 != 7) continue;
    state.Absorb(word);
    word = 0;
  }
  return state.Finish(word | uint64_t{bytes.size() & 0xff} << 56);
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
