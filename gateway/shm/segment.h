// SPDX-License-Identifier: Apache-2.0
// All memory shared with one client: chunks in two arenas, one that the client writes and one that
// it may only read. No two processes share a segment, so a crashing or hostile client reaches its
// own only. Chunks start at 2 MiB and double. They live until the session closes, because the
// client has them mapped; blocks in them are allocated and freed. Belongs to the client's session,
// control thread. Workers use blocks by pointer and are notified before one is freed. Errors:
// ENOMEM (limit of the session or of the system).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/status.h"
#include "gateway/shm/arena.h"
#include "gateway/shm/chunk.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::shm {

// Cache-line aligned block of a segment; zero-filled when allocated.
struct Block {
  uint32_t chunk = 0;
  uint64_t offset = 0;
  uint64_t length = 0;  // as requested
  uint8_t* address = nullptr;

  bool valid() const { return address != nullptr; }
  rocegw_location location() const { return {chunk, static_cast<uint32_t>(length), offset}; }
  template <typename T>
  T* As() const {
    return reinterpret_cast<T*>(address);
  }
};

// Chunk that was made ahead, all free and zero.
struct ReadyChunk {
  std::unique_ptr<Chunk> memory;
  Arena::Spare bookkeeping;
};

// Source of chunks that were made ahead and are charged to a pool already.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  // Takes a chunk of at least so many bytes; nothing: there is none. Allocates nothing.
  virtual std::optional<ReadyChunk> TakeChunk(Writer writer, uint64_t bytes) = 0;
};

class Segment {
 public:
  static constexpr uint64_t kFirstChunk = uint64_t{2} << 20;
  // Number of chunks that are listed without another allocation.
  static constexpr size_t kChunksAhead = 256;
  static constexpr uint64_t kLargestStep = uint64_t{256} << 20;  // chunks do not double beyond it

  // Returns the size of the smallest chunk that fits a block of so many bytes.
  static uint64_t LeastChunk(uint64_t bytes) { return std::max(kFirstChunk, std::bit_ceil(bytes)); }

  // max_bytes limits the sum of all chunks. Chunks of `source` are used first, whatever the limit,
  // and count in the sum. With a source, blocks are cleared when they are freed instead of when
  // they are allocated, so that an allocation from the source's chunks allocates nothing else.
  explicit Segment(uint64_t max_bytes, ChunkSource* source = nullptr,
                   Sealing sealing = Sealing::kForever);

  StatusOr<Block> Allocate(Writer writer, uint64_t bytes);
  // Frees and clears `block`; ignores an invalid one.
  void Free(Block& block);

  // Hand-over to a gateway that takes over: writes chunks without their blocks, or reads them into
  // a new segment, whose blocks are all free. `take` returns the descriptor of a chunk.
  void HandOver(hand_over::StateStream& state, const std::function<UniqueFd(uint32_t chunk)>& take);
  // Reader: takes the block, whose place and length were handed over, and sets its address. Returns
  // false if it is not free.
  [[nodiscard]] bool Adopt(Block& block, Writer writer);

  // From now on, freed blocks are not cleared, because the client is gone.
  void Abandon() { abandoned_ = true; }

  // Sets a new limit; one below bytes() frees nothing.
  void SetMaxBytes(uint64_t max_bytes) { max_bytes_ = max_bytes; }
  // Returns the bytes of all chunks, used or not.
  uint64_t bytes() const { return bytes_; }
  // Returns the part of bytes() that the source gave.
  uint64_t bytes_of_source() const { return bytes_of_source_; }

  // Chunks in the order of their numbers, including those that the client does not know yet.
  size_t chunk_count() const { return chunks_.size(); }
  const Chunk& chunk(size_t number) const { return *chunks_[number].memory; }
  // The client has the chunk.
  void Announced(size_t number) { chunks_[number].memory->Announced(); }
  // Returns true if a gateway that takes over could map all chunks.
  bool for_successor() const { return sealing_ == Sealing::kForSuccessor; }

 private:
  struct Entry {
    std::unique_ptr<Chunk> memory;
    uint64_t fresh_from = 0;  // bytes from here on were never allocated and are still zero
  };

  Arena& ArenaOf(Writer writer) { return arenas_[static_cast<size_t>(writer)]; }
  Status Grow(Writer writer, uint64_t bytes);

  uint64_t max_bytes_;
  ChunkSource* source_;
  Sealing sealing_;
  bool clears_freed_;  // free blocks are clear
  bool abandoned_ = false;
  uint64_t bytes_ = 0;
  uint64_t bytes_of_source_ = 0;
  std::array<Arena, 2> arenas_;
  std::array<uint64_t, 2> next_size_{kFirstChunk, kFirstChunk};
  std::vector<Entry> chunks_;
};

}  // namespace rocegw::shm
