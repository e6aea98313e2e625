// SPDX-License-Identifier: Apache-2.0
// CRC-32 with 128-bit carry-less multiplication. A message is cut into 16-byte blocks, odd bytes
// first; long messages are folded into four accumulators, 64 bytes per step. Finally each
// accumulator and left-over block is multiplied by the power of x for its distance from the end,
// and the sum is reduced (bit order: crc32_polynomial.h).
#include "gateway/wire/crc/crc32_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "gateway/wire/crc/crc32_reduce_x86.h"

#define ROCEGW_PCLMUL __attribute__((target("sse4.1,pclmul")))

namespace rocegw::wire::crc32 {
namespace {

struct alignas(16) Factors {
  uint64_t low;   // for the first eight bytes of a block
  uint64_t high;  // for its last eight bytes
};

// Returns the factors that move a block by so many bits.
constexpr Factors FoldBy(uint64_t bits) { return {FoldConstant(bits + 64), FoldConstant(bits)}; }

constexpr Factors kFold16 = FoldBy(128);
constexpr Factors kFold64 = FoldBy(512);
// kToEnd[b]: factors of the block that has b blocks behind it. The sum is the message times x^32
// and has at most 96 bits.
constexpr Factors kToEnd[] = {FoldBy(32),           FoldBy(128 + 32),     FoldBy(2 * 128 + 32),
                              FoldBy(3 * 128 + 32), FoldBy(4 * 128 + 32), FoldBy(5 * 128 + 32),
                              FoldBy(6 * 128 + 32)};

// kAlign + r shuffles the first r bytes of a block to its end and fills the front with zeros.
alignas(16) constexpr uint8_t kAlign[32] = {
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15};

ROCEGW_PCLMUL inline __m128i Times(__m128i block, const Factors& factors) {
  const __m128i k = _mm_load_si128(reinterpret_cast<const __m128i*>(&factors));
  return _mm_xor_si128(_mm_clmulepi64_si128(block, k, 0x00), _mm_clmulepi64_si128(block, k, 0x11));
}

// Position of the next block, and its destination when copying.
template <bool kCopy>
struct Cursor {
  uint8_t* destination;
  const uint8_t* source;

  // Reads the block once, so that the CRC is that of the bytes written.
  ROCEGW_PCLMUL __m128i Take(size_t advance = 16) {
    __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source));
    source += advance;
    if constexpr (kCopy) {
      asm volatile("" : "+x"(block));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(destination), block);
      destination += advance;
    }
    return block;
  }
};

template <bool kCopy>
ROCEGW_PCLMUL inline uint32_t Run(uint32_t state, uint8_t* destination, const uint8_t* source,
                                  size_t length) {
  if (length < 16) {
    return kCopy ? TableCopy(state, destination, source, length)
                 : TableUpdate(state, source, length);
  }
  Cursor<kCopy> cursor{destination, source};
  size_t blocks = length / 16;
  const size_t odd = length % 16;
  __m128i first;
  if (odd != 0) {
    // When copying, the next block overwrites the end of this one; its read is the one that counts.
    __m128i head = _mm_xor_si128(cursor.Take(odd), _mm_cvtsi32_si128(static_cast<int>(state)));
    head = _mm_shuffle_epi8(head, _mm_loadu_si128(reinterpret_cast<const __m128i*>(kAlign + odd)));
    state = odd < 4 ? state >> (8 * odd) : 0;
    first = _mm_xor_si128(Times(head, kFold16), cursor.Take());
  } else {
    first = cursor.Take();
  }
  __m128i a = _mm_xor_si128(first, _mm_cvtsi32_si128(static_cast<int>(state)));
  --blocks;
  __m128i sum;
  if (blocks < 7) {
    sum = Times(a, kToEnd[blocks]);
  } else {
    __m128i b = cursor.Take();
    __m128i c = cursor.Take();
    __m128i d = cursor.Take();
    for (blocks -= 3; blocks >= 4; blocks -= 4) {
      a = _mm_xor_si128(Times(a, kFold64), cursor.Take());
      b = _mm_xor_si128(Times(b, kFold64), cursor.Take());
      c = _mm_xor_si128(Times(c, kFold64), cursor.Take());
      d = _mm_xor_si128(Times(d, kFold64), cursor.Take());
    }
    sum = _mm_xor_si128(_mm_xor_si128(Times(a, kToEnd[blocks + 3]), Times(b, kToEnd[blocks + 2])),
                        _mm_xor_si128(Times(c, kToEnd[blocks + 1]), Times(d, kToEnd[blocks])));
  }
  while (blocks != 0) sum = _mm_xor_si128(sum, Times(cursor.Take(), kToEnd[--blocks]));
  return Reduce(sum);
}

ROCEGW_PCLMUL uint32_t PclmulUpdate(uint32_t state, const uint8_t* bytes, size_t length) {
  return Run<false>(state, nullptr, bytes, length);
}

ROCEGW_PCLMUL uint32_t PclmulCopy(uint32_t state, uint8_t* destination, const uint8_t* source,
                                  size_t length) {
  return Run<true>(state, destination, source, length);
}

uint32_t PclmulCover(const FrameFields& fields, const uint8_t* bytes, size_t length, size_t zeros) {
  return CoverBy(kPclmulKernel, fields, bytes, length, zeros);
}

ROCEGW_PCLMUL uint32_t PclmulMultiply(uint32_t a, uint32_t b) { return Multiply(a, b); }

}  // namespace

const Kernel kPclmulKernel{"pclmul", PclmulUpdate, PclmulCopy, PclmulCover, PclmulMultiply};

}  // namespace rocegw::wire::crc32

#endif  // defined(__x86_64__)
