// SPDX-License-Identifier: Apache-2.0
// Shared memory of the queue pairs in a pool's reserve. So many queue pairs of usual sizes, with
// what else a program needs, share a pair of chunks, one for each writer. Controllers compute it
// with the same function.
#pragma once

#include <cstdint>

namespace rocegw {

inline constexpr uint32_t kReadyQpsPerPair = 16;
inline constexpr uint64_t kReadyChunkBytes = uint64_t{2} << 20;
constexpr uint64_t ReserveBytes(uint32_t ready_qps) {
  return (uint64_t{ready_qps} + kReadyQpsPerPair - 1) / kReadyQpsPerPair * 2 * kReadyChunkBytes;
}

}  // namespace rocegw
