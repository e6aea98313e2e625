// SPDX-License-Identifier: Apache-2.0
// Message contents as a function of their stream (speaker, purpose, message). Every byte is
// predictable, so misplaced, old or duplicated bytes are detected. Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "tests/sim/network/random.h"

namespace rocegw::sim {

constexpr uint64_t StreamOf(uint64_t speaker, uint64_t what, uint64_t message) {
  return Mix(Mix(speaker * 4 + what) ^ message);
}

constexpr uint64_t ContentWord(uint64_t stream, uint64_t word) {
  const uint64_t x = (stream + word) * 0x9E3779B97F4A7C15;
  return x ^ (x >> 29);
}

// Fills `bytes` with the stream from offset `from` on.
inline void Fill(uint64_t stream, uint64_t from, std::span<uint8_t> bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const uint64_t word = ContentWord(stream, (from + done) / 8);
    const size_t skip = (from + done) % 8;
    const size_t count = std::min(8 - skip, bytes.size() - done);
    std::memcpy(bytes.data() + done, reinterpret_cast<const uint8_t*>(&word) + skip, count);
    done += count;
  }
}

}  // namespace rocegw::sim
