// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/objects/queue_memory.h"

#include <algorithm>

namespace rocegw::session {
namespace {

constexpr uint32_t kMostStride = 1024;
constexpr uint32_t kLeastStride = 256;  // smaller payload areas hold too few messages to be useful

}  // namespace

uint32_t PayloadStride(uint32_t entries, uint32_t budget) {
  const uint32_t stride =
      std::min(kMostStride, budget / entries / ROCEGW_CACHE_LINE * ROCEGW_CACHE_LINE);
  return stride < kLeastStride ? 0 : stride;
}

bool AllocateBlocks(ClientSession& session, std::span<const WantedBlock> wanted) {
  for (const WantedBlock& want : wanted) {
    if (want.bytes == 0) continue;
    auto block = session.Allocate(want.writer, want.bytes);
    if (!block.ok()) {
      for (const WantedBlock& made : wanted) session.segment().Free(made.block);
      return false;
    }
    want.block = *block;
  }
  return true;
}

}  // namespace rocegw::session
