// SPDX-License-Identifier: Apache-2.0
// Heap of the records that peers' messages make at queue pairs and endpoints: messages that arrive
// in pieces or ahead of others, replies that wait. What exceeds a free part is charged to the pool,
// in steps, because a quota has a lock. A pool that gets no more begins no further records: its
// peers are refused for now. Belongs to one worker.
#pragma once

#include <cstddef>

#include "gateway/worker/objects/qp_table.h"
#include "gateway/worker/schedule/scheduler.h"

namespace rocegw::worker {

class RecordHeap {
 public:
  // Heap of a pool on a worker that no quota counts: what loss and reordering in a network of
  // gateways usually need.
  static constexpr size_t kFree = size_t{256} << 10;
  static constexpr size_t kStep = size_t{256} << 10;

  // Counts the records that the queue pair has now. It belongs to a session.
  static void Update(QpSlot& slot);
  // Ends the counting of a queue pair that is about to be destroyed.
  static void Remove(QpSlot& slot);
  // Returns true if the pool may have more. A refused pool asks again.
  static bool MayGrow(PoolAccounts& pool) {
    if (pool.records_refused) Charge(pool);
    return !pool.records_refused;
  }

 private:
  static void Count(QpSlot& slot, size_t records);
  static void Charge(PoolAccounts& pool);
};

}  // namespace rocegw::worker
