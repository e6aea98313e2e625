// SPDX-License-Identifier: Apache-2.0
// Memory of what is in flight on the selective flows of one worker: chunks of records for what was
// sent and not acknowledged, pages for their directories and for the bitmaps of receive windows
// with holes. A flow without anything in flight holds none of it, so the pool's size follows the
// packets in flight, not the number of flows. Owned by the worker, used on its thread only;
// everything must have come back before it dies. Sizes in bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gateway/base/ids.h"
#include "gateway/base/psn.h"
#include "gateway/base/shelf.h"
#include "gateway/base/time.h"
#include "gateway/flow/frame_ref.h"

namespace rocegw::flow {

// No flow has more packets in flight, and no acknowledgement's bitmap tells more.
inline constexpr uint32_t kMaxFlowPackets = 4096;
inline constexpr uint32_t kRecordsPerChunk = 64;
inline constexpr uint32_t kChunksPerFlow = kMaxFlowPackets / kRecordsPerChunk;

// A packet that is sent and not acknowledged. Its slot in the flow is the low 12 bits of its PSN;
// before and after link it by slot into one of two lists: in flight in the order of transmission,
// or lost.
struct SentRecord {
  FrameRef frame;
  uint32_t bytes : 30;
  uint32_t lost : 1;
  uint32_t resent : 1;
  TimePoint sent;
  uint32_t order;  // counts the transmissions of the flow; serial
  uint16_t before;
  uint16_t after;
};
static_assert(sizeof(SentRecord) == 40);

struct RecordChunk {
  uint64_t live = 0;  // bit i: record i is used
  std::array<SentRecord, kRecordsPerChunk> records;
};

class LedgerPool;

// Either the directory of a flow's chunks by slot, or the bitmap of a receive window, with what
// only exists together with it.
struct LedgerPage {
  union {
    std::array<RecordChunk*, kChunksPerFlow> chunks;
    std::array<uint64_t, kMaxFlowPackets / 64> arrived;  // by the low 12 bits of the PSN
  };
  Psn end;              // bitmap: behind the highest that has arrived
  uint32_t beyond = 0;  // bitmap: bits set
  LedgerPool* pool;     // to which it goes back
};

class LedgerPool {
 public:
  LedgerPool() = default;
  LedgerPool(const LedgerPool&) = delete;
  LedgerPool& operator=(const LedgerPool&) = delete;
  ~LedgerPool();

  RecordChunk* TakeChunk();
  void GiveBack(RecordChunk* chunk);
  // With all chunks nullptr, or all bits 0: the same bytes.
  LedgerPage* TakePage();
  void GiveBack(LedgerPage* page);

  size_t bytes_used() const;
  // With what is kept for the next taker: as much as is used, or a few blocks.
  size_t bytes_held() const;

 private:
  Shelf<RecordChunk> chunks_;
  Shelf<LedgerPage> pages_;
};

}  // namespace rocegw::flow
