// SPDX-License-Identifier: Apache-2.0
// All memory shared with one client: chunks in two arenas, one that the client writes and one that
// it may only read. No two processes share a segment, so a crashing or hostile client reaches only
// its own. Chunks start at 2 MiB and double; they live until the session ends, since the client has
// them mapped; blocks in them come and go. Owner: the client's session, control thread; workers use
// blocks by pointer and are told before one is freed. Errors: ENOMEM (limit of the session, or of
// the system).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
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

class Segment {
 public:
  static constexpr uint64_t kFirstChunk = uint64_t{2} << 20;
  static constexpr uint64_t kLargestStep = uint64_t{256} << 20;  // no further doubling

  // max_bytes bounds the sum of all chunks.
  explicit Segment(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  StatusOr<Block> Allocate(Writer writer, uint64_t bytes);
  // Frees and clears `block`; an invalid one is ignored.
  void Free(Block& block);

  // A new bound; one below bytes() takes nothing away.
  void SetMaxBytes(uint64_t max_bytes) { max_bytes_ = max_bytes; }
  // Bytes of all chunks: what the client costs, used or not.
  uint64_t bytes() const { return bytes_; }

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

  uint64_t max_bytes_;
  uint64_t bytes_ = 0;
  std::array<Arena, 2> arenas_;
  std::array<uint64_t, 2> next_size_{kFirstChunk, kFirstChunk};
  std::vector<Entry> chunks_;
};

}  // namespace rocegw::shm
