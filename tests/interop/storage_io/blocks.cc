// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/storage_io/blocks.h"

#include <cstring>

namespace rocegw::storage_io {
namespace {

uint64_t WordOf(uint32_t number, uint64_t seed, size_t index) {
  return (seed ^ uint64_t{number} << 32) * 0x9E3779B97F4A7C15 + index;
}

}  // namespace

void FillBlock(uint32_t number, uint64_t seed, uint8_t* block, size_t bytes) {
  std::memcpy(block, &seed, sizeof seed);
  for (size_t i = 1; i < bytes / sizeof(uint64_t); ++i) {
    const uint64_t word = WordOf(number, seed, i);
    std::memcpy(block + i * sizeof word, &word, sizeof word);
  }
}

bool IsWhole(uint32_t number, const uint8_t* block, size_t bytes) {
  uint64_t seed;
  std::memcpy(&seed, block, sizeof seed);
  for (size_t i = 1; i < bytes / sizeof(uint64_t); ++i) {
    uint64_t word;
    std::memcpy(&word, block + i * sizeof word, sizeof word);
    if (word != WordOf(number, seed, i)) return false;
  }
  return true;
}

}  // namespace rocegw::storage_io
