// SPDX-License-Identifier: Apache-2.0
// Memory for the packets in flight on the selective flows of one worker: chunks of records of sent,
// unacknowledged packets, and pages for the flows' directories and the bitmaps of receive windows
// with holes. A flow with nothing in flight holds none of it, so the pool follows the packets in
// flight, not the number of flows. Belongs to one worker; all memory must be given back before
// destruction. Sizes are bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gateway/base/containers/free_list.h"
#include "gateway/base/ids.h"
#include "gateway/base/psn.h"
#include "gateway/base/time.h"
#include "gateway/flow/frame_ref.h"

namespace rocegw::flow {

// Limit of packets in flight of a flow, and of the packets that an acknowledgement's bitmap covers.
inline constexpr uint32_t kMaxFlowPackets = 4096;
inline constexpr uint32_t kRecordsPerChunk = 64;
inline constexpr uint32_t kChunksPerFlow = kMaxFlowPackets / kRecordsPerChunk;

// Packet that is sent and not acknowledged. Its slot in the flow is the low 12 bits of its PSN.
// `before` and `after` link slots into one of two lists: in flight in transmission order, or lost.
struct SentRecord {
  FrameRef frame;
  uint32_t bytes : 30;
  uint32_t lost : 1;
  uint32_t resent : 1;
  TimePoint sent;
  uint32_t order;  // transmission number within the flow, wraps around
  uint16_t before;
  uint16_t after;
};
static_assert(sizeof(SentRecord) == 40);

struct RecordChunk {
  uint64_t live = 0;  // bit i: record i is in use
  std::array<SentRecord, kRecordsPerChunk> records;
};

class LedgerPool;

// Directory of a flow's chunks by slot, or bitmap of a receive window with its additional state.
struct LedgerPage {
  union {
    std::array<RecordChunk*, kChunksPerFlow> chunks;
    std::array<uint64_t, kMaxFlowPackets / 64> arrived;  // by the low 12 bits of the PSN
  };
  Psn end;              // bitmap: one past the highest arrived PSN
  uint32_t beyond = 0;  // bitmap: number of bits set
  LedgerPool* pool;     // pool that owns the page
};

class LedgerPool {
 public:
  LedgerPool() = default;
  LedgerPool(const LedgerPool&) = delete;
  LedgerPool& operator=(const LedgerPool&) = delete;
  ~LedgerPool();

  RecordChunk* TakeChunk();
  void GiveBack(RecordChunk* chunk);
  // Returns a page with all chunks nullptr, which is the same bytes as all bits 0.
  LedgerPage* TakePage();
  void GiveBack(LedgerPage* page);

  size_t bytes_used() const;
  // Returns the bytes in use plus those kept free for reuse: as many again, or a few blocks.
  size_t bytes_held() const;

 private:
  FreeList<RecordChunk> chunks_;
  FreeList<LedgerPage> pages_;
};

}  // namespace rocegw::flow
