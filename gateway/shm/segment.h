// SPDX-License-Identifier: Apache-2.0
// All memory shared with one client: chunks in two arenas, one that the client writes and one that
// it may only read. No two processes share a segment, so a crashing or hostile client reaches only
// its own. Chunks start at 2 MiB and double; they live until the session ends, since the client has
// them mapped; blocks in them come and go. Owner: the client's session, control thread; workers use
// blocks by pointer and are told before one is freed. Errors: ENOMEM (limit of the session, or of
// the system).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/status.h"
#include "gateway/shm/arena.h"
#include "gateway/shm/chunk.h"

namespace rocegw::shm {

// A cache line aligned place in a segment; zero-filled when it is handed out.
struct Block {
  uint32_t chunk = 0;
  uint64_t offset = 0;
  uint64_t length = 0;  // as asked for
  uint8_t* address = nullptr;

  bool valid() const { return address != nullptr; }
  rocegw_location location() const { return {chunk, static_cast<uint32_t>(length), offset}; }
  template <typename T>
  T* As() const {
    return reinterpret_cast<T*>(address);
  }
};

// A chunk that was made ahead, whole and untouched.
struct ReadyChunk {
  std::unique_ptr<Chunk> memory;
  Arena::Spare bookkeeping;
};

// Chunks made ahead, and who pays for them before they are given away.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  // One of at least so many bytes; nothing: there is none. Allocates nothing.
  virtual std::optional<ReadyChunk> TakeChunk(Writer writer, uint64_t bytes) = 0;
};

class Segment {
 public:
  static constexpr uint64_t kFirstChunk = uint64_t{2} << 20;
  static constexpr uint64_t kLargestStep = uint64_t{256} << 20;  // no further doubling

  // The smallest chunk that a block of so many bytes fits.
  static uint64_t LeastChunk(uint64_t bytes) { return std::max(kFirstChunk, std::bit_ceil(bytes)); }

  // max_bytes bounds the sum of all chunks; those that the source gives, if there is one, come
  // first and are paid for already. Blocks are then cleared when they come back and not when they
  // are handed out, which allocates nothing as long as the source has something.
  explicit Segment(uint64_t max_bytes, ChunkSource* source = nullptr);

  StatusOr<Block> Allocate(Writer writer, uint64_t bytes);
  // Frees and clears `block`; an invalid one is ignored.
  void Free(Block& block);

  // The client is gone: blocks come back as they are from now on.
  void Abandon() { abandoned_ = true; }

  // A new bound; one below bytes() takes nothing away.
  void SetMaxBytes(uint64_t max_bytes) { max_bytes_ = max_bytes; }
  // Bytes of all chunks: what the client costs, used or not.
  uint64_t bytes() const { return bytes_; }
  // Those of them that the source gave.
  uint64_t bytes_of_source() const { return bytes_of_source_; }

  // Chunks in the order of their numbers, those that the client may not know yet included.
  size_t chunk_count() const { return chunks_.size(); }
  const Chunk& chunk(size_t number) const { return *chunks_[number].memory; }

 private:
  struct Entry {
    std::unique_ptr<Chunk> memory;
    uint64_t fresh_from = 0;  // nothing beyond was ever handed out, it is still zero
  };

  Arena& ArenaOf(Writer writer) { return arenas_[static_cast<size_t>(writer)]; }
  Status Grow(Writer writer, uint64_t bytes);

  // Chunks that are listed without another allocation.
  static constexpr size_t kChunksAhead = 256;

  uint64_t max_bytes_;
  ChunkSource* source_;
  bool abandoned_ = false;
  uint64_t bytes_ = 0;
  uint64_t bytes_of_source_ = 0;
  std::array<Arena, 2> arenas_;
  std::array<uint64_t, 2> next_size_{kFirstChunk, kFirstChunk};
  std::vector<Entry> chunks_;
};

}  // namespace rocegw::shm
