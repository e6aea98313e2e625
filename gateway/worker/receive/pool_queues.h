// SPDX-License-Identifier: Apache-2.0
// Received packets that wait because their pool has used up its time while others want theirs: one
// bounded queue for each such pool, so that what arrives for one pool does not delay another's
// packets behind it. Datagrams of plain RoCEv2 and frames of channels wait alike. Belongs to one
// worker.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "gateway/worker/memory/flushed_memory.h"
#include "gateway/worker/receive/waiting_packets.h"
#include "gateway/worker/schedule/scheduler.h"

namespace rocegw::worker {

class PoolQueues {
 public:
  struct Queue {
    // Only compared, never dereferenced: the pool may have been closed.
    const Account* pool = nullptr;
    WaitingPackets packets;

    // Removes the packets before a position, once the memory operations that use their bytes are
    // done.
    void PopBefore(uint64_t at, uint32_t count, FlushedMemory) { packets.PopBefore(at, count); }
  };
  enum class Put : uint8_t {
    kQueued,
    kFull,     // the pool's queue is full
    kNoQueue,  // too many pools wait: the packet is processed at once
  };
  // Bytes in a pool's queue from which the channels that fill it are narrowed. A channel carries
  // the frames of other pools as well, so a short wait does not slow it down.
  static constexpr size_t kCrowdedFrom = WaitingPackets::kBytes / 8;

  // Returns what Push would return for a packet with so many bytes.
  Put Ask(const Account& pool, size_t length) const;
  // Copies a packet into the pool's queue.
  Put Push(const Account& pool, const WaitingPacket& packet);
  // Returns true if packets of the pool wait, so that later ones must wait behind them.
  bool Waits(const Account& pool) const { return Find(pool) != nullptr; }
  // Returns true if so much waits that the senders must slow down.
  bool Crowded(const Account& pool) const {
    const Queue* const queue = Find(pool);
    return queue != nullptr && queue->packets.used() >= kCrowdedFrom;
  }
  bool empty() const { return used_ == 0; }
  // Queues with packets.
  size_t size() const { return used_; }
  Queue& at(size_t i) { return *queues_[i]; }
  // Makes empty queues free for other pools.
  void FreeEmpty();

 private:
  // Each queue has a mebibyte.
  static constexpr size_t kMostQueues = 16;

  Queue* Find(const Account& pool) const {
    for (size_t i = 0; i < used_; ++i)
      if (queues_[i]->pool == &pool) return queues_[i].get();
    return nullptr;
  }

  std::vector<std::unique_ptr<Queue>> queues_;  // queues in use come first
  size_t used_ = 0;
};

}  // namespace rocegw::worker
