// SPDX-License-Identifier: Apache-2.0
// State of a segment for a gateway that takes over (gateway/hand_over/state_stream.h).
#include <utility>

#include "gateway/hand_over/state_stream.h"
#include "gateway/shm/segment.h"

namespace rocegw::shm {
namespace {

// Limits of lists and sums that quotas bound otherwise.
constexpr uint32_t kMostChunks = 1u << 16;
constexpr uint64_t kMostBytes = uint64_t{1} << 46;
constexpr uint64_t kPage = 4096;

}  // namespace

void Segment::HandOver(hand_over::StateStream& state,
                       const std::function<UniqueFd(uint32_t chunk)>& take) {
  const hand_over::StateRecord record(state, hand_over::StateKind::kSegment);
  auto& [max_bytes, source, sealing, clears_freed, abandoned, bytes, bytes_of_source, arenas,
         next_size, chunks] = *this;
  (void)max_bytes;  // follows the pool
  (void)source;     // a reserve stays with its gateway
  (void)arenas;     // owners of blocks take them again
  state.Require(state.reading() || (sealing == Sealing::kForSuccessor && !abandoned),
                "shared memory is sealed for ever");
  state(clears_freed, bytes_of_source);
  for (uint64_t& size : next_size) {
    state(size);
    state.Require(size >= kFirstChunk && size <= 2 * kLargestStep, "chunk size out of range");
  }
  const uint32_t count = state.Count(chunks.size(), kMostChunks);
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    if (state.reading()) chunks.emplace_back();
    auto& [memory, fresh_from] = chunks[i];
    uint64_t size = memory == nullptr ? 0 : memory->size();
    bool of_client = memory != nullptr && memory->writer() == Writer::kClient;
    state(size, of_client, fresh_from);
    const bool possible =
        size != 0 && size % kPage == 0 && size <= kMostBytes && fresh_from <= size;
    if (!state.Require(possible, "chunk of impossible size")) break;
    if (!state.reading()) continue;
    const Writer writer = of_client ? Writer::kClient : Writer::kDaemon;
    auto adopted = Chunk::Adopt(take(i), size, writer);
    if (!state.Require(adopted.ok(), "shared memory of a program cannot be mapped")) break;
    memory = std::move(*adopted);
    memory->MapPages(fresh_from);
    ArenaOf(writer).AddChunk(i, size);
    bytes += size;
  }
  // A chunk that is missing must not be freed.
  if (state.reading() && !state.ok()) chunks.clear();
}

bool Segment::Adopt(Block& block, Writer writer) {
  if (block.chunk >= chunks_.size() || chunks_[block.chunk].memory->writer() != writer)
    return false;
  if (!ArenaOf(writer).TakeAt({block.chunk, block.offset, block.length})) return false;
  block.address = chunks_[block.chunk].memory->base() + block.offset;
  return true;
}

}  // namespace rocegw::shm
