// SPDX-License-Identifier: Apache-2.0
// Arithmetic modulo the CRC-32 polynomial, at compile time and for tables. Polynomials are
// "reflected": bit i is the coefficient of x^(31-i) in a 32-bit value and of x^(63-i) in a 64-bit
// value, like the CRC register and the bytes of a message (least significant bit first).
#pragma once

#include <cstdint>

namespace rocegw::wire::crc32 {

// x^32 + x^26 + x^23 + ... + 1 without its x^32 (IEEE 802.3).
inline constexpr uint32_t kPolynomial = 0xEDB88320;
inline constexpr uint32_t kOne = 0x80000000;
// Order of x: the polynomial is primitive, so negative exponents are possible.
inline constexpr uint64_t kOrder = 0xFFFFFFFF;

constexpr uint32_t TimesX(uint32_t a) { return (a >> 1) ^ ((a & 1) != 0 ? kPolynomial : 0); }

constexpr uint32_t DividedByX(uint32_t a) {
  return (a & kOne) != 0 ? ((a ^ kPolynomial) << 1) | 1 : a << 1;
}

constexpr uint32_t TimesModulo(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (int i = 31; i >= 0; --i) {
    if ((b >> i & 1) != 0) product ^= a;
    a = TimesX(a);
  }
  return product;
}

// Returns x^exponent; exponents count modulo kOrder.
constexpr uint32_t PowerOfX(uint64_t exponent) {
  uint32_t result = kOne;
  uint32_t square = TimesX(kOne);
  for (exponent %= kOrder; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = TimesModulo(result, square);
    square = TimesModulo(square, square);
  }
  return result;
}

// Returns floor(x^64 / P), Barrett's constant: 33 bits, bit i is the coefficient of x^(32-i).
constexpr uint64_t BarrettQuotient() {
  uint64_t quotient = 1;
  uint32_t remainder = kPolynomial;
  for (int i = 1; i <= 32; ++i) {
    quotient |= static_cast<uint64_t>(remainder & 1) << i;
    remainder = TimesX(remainder);
  }
  return quotient;
}

// P itself in that form.
inline constexpr uint64_t kFullPolynomial = static_cast<uint64_t>(kPolynomial) << 1 | 1;

// Returns the constant c with: the carry-less product of a reflected 64-bit value q with c, read as
// a reflected 128-bit value, is congruent to q * x^exponent. Such a reading is one factor x too
// high, and c lies in the upper half.
constexpr uint64_t FoldConstant(uint64_t exponent) {
  return static_cast<uint64_t>(PowerOfX(exponent + kOrder - 1)) << 32;
}

}  // namespace rocegw::wire::crc32
