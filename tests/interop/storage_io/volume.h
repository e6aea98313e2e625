// SPDX-License-Identifier: Apache-2.0
// The target's blocks, in memory. A write that is not a whole block is refused.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/interop/storage_io/blocks.h"

namespace rocegw::storage_io {

class Volume {
 public:
  Volume(uint32_t block_bytes, bool verify)
      : block_bytes_(block_bytes), verify_(verify), bytes_(kVolumeBytes) {
    for (uint32_t i = 0; i < BlocksOfVolume(block_bytes); ++i) {
      FillBlock(i, /*seed=*/1, &bytes_[Offset(i)], block_bytes);
    }
  }

  bool Has(uint32_t block, uint32_t bytes) const {
    return bytes == block_bytes_ && block < BlocksOfVolume(block_bytes_);
  }
  void Read(uint32_t block, uint8_t* to) const {
    std::memcpy(to, &bytes_[Offset(block)], block_bytes_);
  }
  bool Write(uint32_t block, const uint8_t* from) {
    if (verify_ && !IsWhole(block, from, block_bytes_)) return false;
    std::memcpy(&bytes_[Offset(block)], from, block_bytes_);
    return true;
  }

 private:
  size_t Offset(uint32_t block) const { return size_t{block} * block_bytes_; }

  const uint32_t block_bytes_;
  const bool verify_;
  std::vector<uint8_t> bytes_;
};

}  // namespace rocegw::storage_io
