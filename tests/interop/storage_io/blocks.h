// SPDX-License-Identifier: Apache-2.0
// Blocks of the volume, whose content names the write that made them: a seed in the first word,
// from which, with the number of the block, each other word follows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocegw::storage_io {

constexpr uint64_t kVolumeBytes = 64 << 20;

constexpr uint32_t BlocksOfVolume(uint32_t block_bytes) {
  return static_cast<uint32_t>(kVolumeBytes / block_bytes);
}

// `bytes` is a multiple of 8 and at least 16.
void FillBlock(uint32_t number, uint64_t seed, uint8_t* block, size_t bytes);

// Returns true if the block is a whole one: not of another number, not from two writes.
bool IsWhole(uint32_t number, const uint8_t* block, size_t bytes);

}  // namespace rocegw::storage_io
