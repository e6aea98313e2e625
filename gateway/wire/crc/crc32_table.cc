// SPDX-License-Identifier: Apache-2.0
// CRC-32 by tables, eight bytes per step ("slicing by eight"): for CPUs without carry-less
// multiplication, and for ends shorter than a vector.
#include <array>

#include "gateway/wire/byte_order.h"
#include "gateway/wire/crc/crc32_kernels.h"
#include "gateway/wire/crc/crc32_polynomial.h"

namespace rocegw::wire::crc32 {
namespace {

using Slices = std::array<std::array<uint32_t, 256>, 8>;

// kSlices[k][b]: state after byte b and k zero bytes, from state 0.
constexpr Slices MakeSlices() {
  Slices slices{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t state = b;
    for (int bit = 0; bit < 8; ++bit) state = TimesX(state);
    slices[0][b] = state;
  }
  for (size_t k = 1; k < slices.size(); ++k) {
    for (size_t b = 0; b < 256; ++b) {
      const uint32_t previous = slices[k - 1][b];
      slices[k][b] = (previous >> 8) ^ slices[0][previous & 0xFF];
    }
  }
  return slices;
}

constexpr Slices kSlices = MakeSlices();

uint32_t StepByte(uint32_t state, uint8_t byte) {
  return (state >> 8) ^ kSlices[0][(state ^ byte) & 0xFF];
}

uint32_t StepWord(uint32_t state, uint64_t word) {
  word ^= state;
  uint32_t next = 0;
  for (size_t k = 0; k < 8; ++k) next ^= kSlices[7 - k][word >> (8 * k) & 0xFF];
  return next;
}

// Keeps the compiler from reading the source twice: another process may change it meanwhile.
template <typename T>
T Once(T value) {
  asm volatile("" : "+r"(value));
  return value;
}

uint32_t TableMultiply(uint32_t a, uint32_t b) { return TimesX(TimesModulo(a, b)); }

uint32_t TableCover(const FrameFields& fields, const uint8_t* bytes, size_t length, size_t zeros) {
  return CoverBy(kTableKernel, fields, bytes, length, zeros);
}

}  // namespace

uint32_t TableUpdate(uint32_t state, const uint8_t* bytes, size_t length) {
  for (; length >= 8; length -= 8, bytes += 8) state = StepWord(state, LoadRaw<uint64_t>(bytes));
  for (; length != 0; --length, ++bytes) state = StepByte(state, *bytes);
  return state;
}

uint32_t TableCopy(uint32_t state, uint8_t* destination, const uint8_t* source, size_t length) {
  for (; length >= 8; length -= 8, source += 8, destination += 8) {
    const auto word = Once(LoadRaw<uint64_t>(source));
    StoreRaw(destination, word);
    state = StepWord(state, word);
  }
  for (; length != 0; --length, ++source, ++destination) {
    const uint8_t byte = Once(*source);
    *destination = byte;
    state = StepByte(state, byte);
  }
  return state;
}

const Kernel kTableKernel{"table", TableUpdate, TableCopy, TableCover, TableMultiply};

}  // namespace rocegw::wire::crc32
