// SPDX-License-Identifier: Apache-2.0
// Final steps of both carry-less kernels: reduce a sum of products to a CRC state (bit order:
// crc32_polynomial.h). Only for the kernels' source files.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>

#include "gateway/wire/crc/crc32_polynomial.h"

namespace rocegw::wire::crc32 {

struct alignas(16) Barrett {
  uint64_t quotient = BarrettQuotient();
  uint64_t polynomial = kFullPolynomial;
};
inline constexpr Barrett kBarrett;
inline constexpr uint64_t kReduceTop = FoldConstant(64);

// Returns the remainder of the 64 bits in the lower (kHalf 0) or upper (kHalf 1) half.
template <int kHalf>
__attribute__((target("sse4.1,pclmul"), always_inline)) inline uint32_t ReduceHalf(__m128i value) {
  const __m128i k = _mm_load_si128(reinterpret_cast<const __m128i*>(&kBarrett));
  __m128i q = _mm_clmulepi64_si128(value, k, kHalf);
  q = _mm_and_si128(q, _mm_cvtsi64_si128(0xFFFFFFFF));
  q = _mm_clmulepi64_si128(q, k, 0x10);
  if constexpr (kHalf == 1) value = _mm_unpackhi_epi64(value, value);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(q, value), 1));
}

// Reduces 96 bits to 64, in the upper half.
__attribute__((target("sse4.1,pclmul"), always_inline)) inline __m128i ReduceTop(__m128i value) {
  return _mm_xor_si128(
      value, _mm_clmulepi64_si128(value, _mm_cvtsi64_si128(static_cast<int64_t>(kReduceTop)), 0));
}

__attribute__((target("sse4.1,pclmul"), always_inline)) inline uint32_t Reduce(__m128i value) {
  return ReduceHalf<1>(ReduceTop(value));
}

// Implements Kernel::multiply.
__attribute__((target("sse4.1,pclmul"), always_inline)) inline uint32_t Multiply(uint32_t a,
                                                                                 uint32_t b) {
  return ReduceHalf<0>(_mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(a)),
                                            _mm_cvtsi32_si128(static_cast<int>(b)), 0));
}

}  // namespace rocegw::wire::crc32

#endif  // defined(__x86_64__)
