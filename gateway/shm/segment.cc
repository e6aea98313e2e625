// SPDX-License-Identifier: Apache-2.0
#include "gateway/shm/segment.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>

#include "gateway/base/invariant.h"

namespace rocegw::shm {
namespace {

constexpr uint64_t kLine = ROCEGW_CACHE_LINE;

constexpr uint64_t InLines(uint64_t bytes) { return (bytes + kLine - 1) & ~(kLine - 1); }

}  // namespace

Segment::Segment(uint64_t max_bytes, ChunkSource* source, Sealing sealing)
    : max_bytes_(max_bytes), source_(source), sealing_(sealing), clears_freed_(source != nullptr) {
  if (source_ != nullptr) chunks_.reserve(kChunksAhead);
}

Status Segment::Grow(Writer writer, uint64_t bytes) {
  if (source_ != nullptr) {
    if (auto ready = source_->TakeChunk(writer, bytes)) {
      const uint64_t size = ready->memory->size();
      ArenaOf(writer).AddChunk(static_cast<uint32_t>(chunks_.size()), size,
                               std::move(ready->bookkeeping));
      chunks_.push_back({std::move(ready->memory), 0});
      bytes_ += size;
      bytes_of_source_ += size;
      return OkStatus();
    }
  }
  uint64_t& next = next_size_[static_cast<size_t>(writer)];
  const uint64_t left = max_bytes_ - std::min(bytes_, max_bytes_);
  const uint64_t least = LeastChunk(bytes);
  uint64_t size = std::max(next, least);
  // The last chunks are smaller, so that nearly all of the limit can be used.
  while (size > left && size > least) size /= 2;
  if (size > left) {
    return {ENOMEM, "shared memory limit of the session reached"};
  }
  auto chunk = Chunk::Create(size, writer, sealing_);
  if (!chunk.ok()) return {ENOMEM, chunk.status().text()};
  ArenaOf(writer).AddChunk(static_cast<uint32_t>(chunks_.size()), size);
  chunks_.push_back({std::move(*chunk), 0});
  bytes_ += size;
  next = std::min(size * 2, kLargestStep);
  return OkStatus();
}

StatusOr<Block> Segment::Allocate(Writer writer, uint64_t bytes) {
  // rocegw_location::length has 32 bits.
  if (bytes == 0 || bytes > std::numeric_limits<uint32_t>::max()) {
    return Status(ENOMEM, "shared memory block of impossible size");
  }
  auto place = ArenaOf(writer).Take(bytes);
  if (!place) {
    if (Status grown = Grow(writer, bytes); !grown.ok()) return grown;
    place = ArenaOf(writer).Take(bytes);
    if (!ROCEGW_INVARIANT(place.has_value(), "segment-grown-chunk-holds-block")) {
      return Status(ENOMEM, "shared memory bookkeeping");
    }
  }
  Entry& entry = chunks_[place->chunk];
  Block block{place->chunk, place->offset, bytes, entry.memory->base() + place->offset};
  if (writer == Writer::kDaemon) {
    if (Status there = entry.memory->Populate(place->offset, place->length); !there.ok()) {
      Free(block);
      return there;
    }
  }
  const uint64_t end = place->offset + place->length;
  if (!clears_freed_ && place->offset < entry.fresh_from) {
    std::memset(block.address, 0, std::min(end, entry.fresh_from) - place->offset);
  }
  entry.fresh_from = std::max(entry.fresh_from, end);
  return block;
}

void Segment::Free(Block& block) {
  if (!block.valid()) return;
  const Writer writer = chunks_[block.chunk].memory->writer();
  if (clears_freed_ && !abandoned_) std::memset(block.address, 0, block.length);
  const bool was_taken = ArenaOf(writer).Give({block.chunk, block.offset, InLines(block.length)});
  (void)ROCEGW_INVARIANT(was_taken, "segment-block-freed-once");
  block = Block{};
}

}  // namespace rocegw::shm
