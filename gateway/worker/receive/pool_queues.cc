// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/receive/pool_queues.h"

#include <utility>

namespace rocegw::worker {

PoolQueues::Put PoolQueues::Ask(const Account& pool, size_t length) const {
  const Queue* const queue = Find(pool);
  if (queue == nullptr) return used_ == kMostQueues ? Put::kNoQueue : Put::kQueued;
  return queue->packets.HasRoom(length) ? Put::kQueued : Put::kFull;
}

PoolQueues::Put PoolQueues::Push(const Account& pool, const WaitingPacket& packet) {
  const Put put = Ask(pool, packet.bytes.size());
  if (put != Put::kQueued) return put;
  Queue* queue = Find(pool);
  if (queue == nullptr) {
    if (used_ == queues_.size()) queues_.push_back(std::make_unique<Queue>());
    queue = queues_[used_++].get();
    queue->pool = &pool;
  }
  queue->packets.Push(packet);
  return put;
}

void PoolQueues::FreeEmpty() {
  for (size_t i = 0; i < used_;) {
    if (queues_[i]->packets.empty()) {
      std::swap(queues_[i], queues_[--used_]);
    } else {
      ++i;
    }
  }
}

}  // namespace rocegw::worker
