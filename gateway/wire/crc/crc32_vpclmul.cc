// SPDX-License-Identifier: Apache-2.0
// CRC-32 with 512-bit carry-less multiplication: like crc32_pclmul.cc, with blocks of 64 bytes.
// Masked loads and stores handle odd lengths, so short messages need no other code.
#include "gateway/wire/crc/crc32_kernels.h"

#if defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12's AVX-512 headers read a value that is undefined on purpose.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "gateway/wire/crc/crc32_reduce_x86.h"

#define ROCEGW_VPCLMUL \
  __attribute__((target("sse4.1,pclmul,avx512f,avx512bw,avx512vl,avx512vbmi,vpclmulqdq")))

namespace rocegw::wire::crc32 {
namespace {

struct alignas(64) Factors {
  uint64_t words[8];  // a factor for each eight bytes of a block
};

// Returns the factors that move each 16 bytes of a block by so many bits.
constexpr Factors FoldLanesBy(uint64_t bits) {
  Factors f{};
  for (int i = 0; i < 8; ++i) f.words[i] = FoldConstant(bits + (i % 2 == 0 ? 64 : 0));
  return f;
}
// Returns the factors that move every eight bytes of a block with `following` blocks behind it to
// the end of the message, times x^32: the sum of all products has at most 96 bits.
constexpr Factors ToEnd(uint64_t following) {
  Factors f{};
  for (uint64_t i = 0; i < 8; ++i) f.words[i] = FoldConstant(512 * following + 64 * (7 - i) + 32);
  return f;
}

constexpr Factors kFold256 = FoldLanesBy(4 * 512);
constexpr Factors kToEnd[] = {ToEnd(0), ToEnd(1), ToEnd(2), ToEnd(3), ToEnd(4), ToEnd(5), ToEnd(6)};

struct alignas(64) ByteIndices {
  uint8_t bytes[64];
};
constexpr ByteIndices MakeIndices() {
  ByteIndices indices{};
  for (uint8_t i = 0; i < 64; ++i) indices.bytes[i] = i;
  return indices;
}
constexpr ByteIndices kIndices = MakeIndices();

constexpr int kXor3 = 0x96;

ROCEGW_VPCLMUL inline __m512i LoadTable(const void* table) { return _mm512_load_si512(table); }

ROCEGW_VPCLMUL inline __m512i ToEndTable(size_t following) { return LoadTable(&kToEnd[following]); }

// Returns block * factors ^ addend.
ROCEGW_VPCLMUL inline __m512i TimesPlus(__m512i block, __m512i factors, __m512i addend) {
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(block, factors, 0x00),
                                   _mm512_clmulepi64_epi128(block, factors, 0x11), addend, kXor3);
}

ROCEGW_VPCLMUL inline __m128i SumOfLanes(__m512i v) {
  const __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
  return _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

ROCEGW_VPCLMUL inline __m512i Low32(uint32_t value) {
  return _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(value)));
}

// Position of the next block, and its destination when copying. Each byte is read once, so that the
// CRC is that of the bytes written.
template <bool kCopy>
struct Cursor {
  uint8_t* destination;
  const uint8_t* source;

  ROCEGW_VPCLMUL __m512i Take() {
    __m512i block = _mm512_loadu_si512(source);
    source += 64;
    if constexpr (kCopy) {
      asm volatile("" : "+v"(block));
      _mm512_storeu_si512(destination, block);
      destination += 64;
    }
    return block;
  }

  // Takes the first `count` bytes; the others are zero.
  ROCEGW_VPCLMUL __m512i TakeFew(size_t count) {
    const __mmask64 mask = (uint64_t{1} << count) - 1;
    __m512i block = _mm512_maskz_loadu_epi8(mask, source);
    source += count;
    if constexpr (kCopy) {
      asm volatile("" : "+v"(block));
      _mm512_mask_storeu_epi8(destination, mask, block);
      destination += count;
    }
    return block;
  }
};

// Returns the message times x^32, in 96 bits. Bits of `state` that lie behind the last byte stay in
// it.
template <bool kCopy>
[[gnu::always_inline]] ROCEGW_VPCLMUL inline __m128i Sum(uint32_t& state, uint8_t* destination,
                                                         const uint8_t* source, size_t length) {
  Cursor<kCopy> cursor{destination, source};
  size_t blocks = length / 64;
  const size_t odd = length % 64;
  __m512i a;
  if (odd != 0) {
    // Moves the odd bytes to the end of a block and fills the front with zeros.
    const __m512i index =
        _mm512_add_epi8(LoadTable(&kIndices), _mm512_set1_epi8(static_cast<char>(odd)));
    a = _mm512_maskz_permutexvar_epi8(~uint64_t{0} << (64 - odd), index,
                                      _mm512_xor_si512(cursor.TakeFew(odd), Low32(state)));
    state = odd < 4 ? state >> (8 * odd) : 0;
  } else if (blocks != 0) {
    a = _mm512_xor_si512(cursor.Take(), Low32(state));
    state = 0;
    --blocks;
  } else {
    return _mm_setzero_si128();
  }
  const __m512i zero = _mm512_setzero_si512();
  if (blocks == 0) return SumOfLanes(TimesPlus(a, ToEndTable(0), zero));
  __m512i b = _mm512_xor_si512(cursor.Take(), Low32(state));
  state = 0;
  --blocks;
  __m512i sum;
  if (blocks < 6) {
    sum = TimesPlus(b, ToEndTable(blocks), TimesPlus(a, ToEndTable(blocks + 1), zero));
  } else {
    const __m512i fold = LoadTable(&kFold256);
    __m512i c = cursor.Take();
    __m512i d = cursor.Take();
    for (blocks -= 2; blocks >= 4; blocks -= 4) {
      a = TimesPlus(a, fold, cursor.Take());
      b = TimesPlus(b, fold, cursor.Take());
      c = TimesPlus(c, fold, cursor.Take());
      d = TimesPlus(d, fold, cursor.Take());
    }
    sum = TimesPlus(a, ToEndTable(blocks + 3), TimesPlus(b, ToEndTable(blocks + 2), zero));
    sum = TimesPlus(c, ToEndTable(blocks + 1), TimesPlus(d, ToEndTable(blocks), sum));
  }
  while (blocks != 0) sum = TimesPlus(cursor.Take(), ToEndTable(--blocks), sum);
  return SumOfLanes(sum);
}

ROCEGW_VPCLMUL uint32_t VpclmulUpdate(uint32_t state, const uint8_t* bytes, size_t length) {
  const __m128i sum = Sum<false>(state, nullptr, bytes, length);
  return Reduce(sum) ^ state;
}

ROCEGW_VPCLMUL uint32_t VpclmulCopy(uint32_t state, uint8_t* destination, const uint8_t* source,
                                    size_t length) {
  const __m128i sum = Sum<true>(state, destination, source, length);
  return Reduce(sum) ^ state;
}

// Moves a value of 96 bits by `length` bytes, again in 96 bits.
ROCEGW_VPCLMUL inline __m128i MoveOn(__m128i value, size_t length) {
  const auto factor = static_cast<int64_t>(uint64_t{ShiftFactor(length)} << 32);
  return _mm_clmulepi64_si128(ReduceTop(value), _mm_cvtsi64_si128(factor), 0x01);
}

// Headers and rest are independent until the last reduction.
ROCEGW_VPCLMUL uint32_t VpclmulCover(const FrameFields& fields, const uint8_t* bytes, size_t length,
                                     size_t zeros) {
  const FrameWords f = MakeFrame(fields);
  const __m512i frame = _mm512_set_epi64(
      static_cast<int64_t>(f.w[7]), static_cast<int64_t>(f.w[6]), static_cast<int64_t>(f.w[5]),
      static_cast<int64_t>(f.w[4]), static_cast<int64_t>(f.w[3]), static_cast<int64_t>(f.w[2]),
      static_cast<int64_t>(f.w[1]), static_cast<int64_t>(f.w[0]));
  const __m128i head = SumOfLanes(TimesPlus(frame, ToEndTable(0), _mm512_setzero_si512()));
  uint32_t state = 0;
  __m128i rest = Sum<false>(state, nullptr, bytes, length);
  if (zeros != 0) rest = MoveOn(rest, zeros);
  return Reduce(_mm_xor_si128(MoveOn(head, length + zeros), rest));
}

ROCEGW_VPCLMUL uint32_t VpclmulMultiply(uint32_t a, uint32_t b) { return Multiply(a, b); }

}  // namespace

const Kernel kVpclmulKernel{"vpclmul", VpclmulUpdate, VpclmulCopy, VpclmulCover, VpclmulMultiply};

}  // namespace rocegw::wire::crc32

#endif  // defined(__x86_64__)
