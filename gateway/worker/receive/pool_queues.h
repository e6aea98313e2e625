// SPDX-License-Identifier: Apache-2.0
// Received datagrams that wait because their pool has used up its time while others want theirs.
// One bounded queue for each such pool, so that what arrives for one pool does not delay another's
// packets behind it. The datagrams are copied: the port uses its memory again. Belongs to one
// worker.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "gateway/worker/handoff.h"
#include "gateway/worker/schedule/scheduler.h"

namespace rocegw::worker {

class PoolQueues {
 public:
  struct Queue {
    // Only compared, never dereferenced: the pool may have been closed.
    const Account* pool = nullptr;
    HandoffRing datagrams;
  };
  enum class Put : uint8_t {
    kQueued,
    kFull,     // the pool's queue is full
    kNoQueue,  // too many pools wait: the datagram is processed at once
  };

  // Copies a datagram into the pool's queue.
  Put Push(const Account& pool, uint32_t device, const wire::RxDatagram& datagram);
  // Returns true if datagrams of the pool wait, so that later ones must wait behind them.
  bool Waits(const Account& pool) const {
    for (size_t i = 0; i < used_; ++i)
      if (queues_[i]->pool == &pool) return true;
    return false;
  }
  bool empty() const { return used_ == 0; }
  // Queues with datagrams.
  size_t size() const { return used_; }
  Queue& at(size_t i) { return *queues_[i]; }
  // Makes empty queues free for other pools.
  void FreeEmpty();

 private:
  // Each queue has a mebibyte.
  static constexpr size_t kMostQueues = 16;
  std::vector<std::unique_ptr<Queue>> queues_;  // queues in use come first
  size_t used_ = 0;
};

}  // namespace rocegw::worker
