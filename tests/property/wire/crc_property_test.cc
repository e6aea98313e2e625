// SPDX-License-Identifier: Apache-2.0
// CRC kernels against a reference that works bit by bit from the polynomial, over random lengths
// and alignments.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "gateway/wire/crc/crc32.h"
#include "gateway/wire/crc/icrc.h"
#include "tests/support/random.h"

namespace rocegw::wire {
namespace {

using rocegw::testing::Random;
using rocegw::testing::TestSeed;

uint32_t Reference(uint32_t state, const uint8_t* bytes, size_t length) {
  for (size_t i = 0; i < length; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      const uint32_t feedback = (state ^ bytes[i] >> bit) & 1;
      state = state >> 1 ^ (feedback != 0 ? 0xEDB88320u : 0u);
    }
  }
  return state;
}

// Returns a length, mostly short or near the MTUs.
size_t SomeLength(Random& random) {
  switch (random.Below(4)) {
    case 0:
      return random.Below(20);
    case 1:
      return random.Below(600);
    case 2:
      return random.Between(1000, 1100);
    default:
      return random.Below(5000);
  }
}

TEST(CrcKernels, AnyMessage_GivesTheStateOfTheReference) {
  Random random(TestSeed(1));
  for (int round = 0; round < 20000; ++round) {
    const size_t length = SomeLength(random);
    const size_t offset = random.Below(64);
    const auto state = random.Value<uint32_t>();
    const std::vector<uint8_t> bytes = random.Bytes(offset + length);
    const uint32_t expected = Reference(state, bytes.data() + offset, length);
    for (const crc32::Kernel* kernel : crc32::SupportedKernels()) {
      ASSERT_EQ(kernel->update(state, bytes.data() + offset, length), expected)
          << kernel->name << " length " << length << " offset " << offset;
    }
  }
}

TEST(CrcKernels, EveryShortLength_GivesTheStateOfTheReference) {
  Random random(TestSeed(2));
  for (size_t length = 0; length <= 1200; ++length) {
    const auto state = random.Value<uint32_t>();
    const std::vector<uint8_t> bytes = random.Bytes(length);
    const uint32_t expected = Reference(state, bytes.data(), length);
    for (const crc32::Kernel* kernel : crc32::SupportedKernels()) {
      ASSERT_EQ(kernel->update(state, bytes.data(), length), expected)
          << kernel->name << ' ' << length;
    }
  }
}

TEST(CrcKernels, Copy_CopiesExactlyAndGivesTheSameState) {
  Random random(TestSeed(3));
  for (int round = 0; round < 10000; ++round) {
    const size_t length = round < 1200 ? static_cast<size_t>(round) : SomeLength(random);
    const size_t from = random.Below(64);
    const size_t to = random.Below(64);
    const auto state = random.Value<uint32_t>();
    const std::vector<uint8_t> source = random.Bytes(from + length);
    const uint32_t expected = Reference(state, source.data() + from, length);
    for (const crc32::Kernel* kernel : crc32::SupportedKernels()) {
      std::vector<uint8_t> target(to + length + 64, 0x5A);
      ASSERT_EQ(kernel->copy(state, target.data() + to, source.data() + from, length), expected)
          << kernel->name << " length " << length;
      ASSERT_TRUE(std::equal(source.begin() + static_cast<ptrdiff_t>(from), source.end(),
                             target.begin() + static_cast<ptrdiff_t>(to)))
          << kernel->name << " length " << length;
      // Bytes around the target are not written.
      const auto untouched = [](uint8_t byte) { return byte == 0x5A; };
      ASSERT_TRUE(
          std::all_of(target.begin(), target.begin() + static_cast<ptrdiff_t>(to), untouched));
      ASSERT_TRUE(std::all_of(target.end() - 64, target.end(), untouched))
          << kernel->name << ' ' << length;
    }
  }
}

TEST(CrcKernels, Multiply_IsThatOfPolynomials) {
  Random random(TestSeed(4));
  for (int round = 0; round < 20000; ++round) {
    const auto a = random.Value<uint32_t>();
    const auto b = random.Value<uint32_t>();
    // By hand: b's coefficients from the highest power down (bit 0), with one more factor x.
    uint32_t expected = 0;
    const auto times_x = [](uint32_t v) { return v >> 1 ^ ((v & 1) != 0 ? 0xEDB88320u : 0u); };
    for (int bit = 0; bit < 32; ++bit) expected = times_x(expected) ^ ((b >> bit & 1) != 0 ? a : 0);
    expected = times_x(expected);
    for (const crc32::Kernel* kernel : crc32::SupportedKernels()) {
      ASSERT_EQ(kernel->multiply(a, b), expected) << kernel->name;
    }
  }
}

TEST(CrcFunctions, PartsJoin_AsTheHeaderSays) {
  Random random(TestSeed(5));
  for (int round = 0; round < 5000; ++round) {
    const std::vector<uint8_t> bytes = random.Bytes(SomeLength(random));
    const std::span all(bytes);
    const size_t cut = random.Below(bytes.size() + 1);
    const auto state = random.Value<uint32_t>();
    const uint32_t whole = CrcUpdate(state, all);
    ASSERT_EQ(CrcUpdate(CrcUpdate(state, all.first(cut)), all.subspan(cut)), whole);
    ASSERT_EQ(CrcShift(CrcUpdate(state, all.first(cut)), bytes.size() - cut) ^
                  CrcUpdate(0, all.subspan(cut)),
              whole);
  }
}

}  // namespace
}  // namespace rocegw::wire
