// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/receive/pool_queues.h"

#include <utility>

namespace rocegw::worker {

PoolQueues::Put PoolQueues::Push(const Account& pool, uint32_t device,
                                 const wire::RxDatagram& datagram) {
  Queue* queue = nullptr;
  for (size_t i = 0; i < used_ && queue == nullptr; ++i)
    if (queues_[i]->pool == &pool) queue = queues_[i].get();
  if (queue == nullptr) {
    if (used_ == queues_.size()) {
      if (used_ == kMostQueues) return Put::kNoQueue;
      queues_.push_back(std::make_unique<Queue>());
    }
    queue = queues_[used_++].get();
    queue->pool = &pool;
  }
  wire::RxDatagram marked = datagram;
  // The queue is this gateway's own congestion: its senders slow down as for a switch's mark.
  if ((marked.meta.traffic_class & wire::kEcnMask) != 0) marked.meta.traffic_class |= wire::kEcnCe;
  return queue->datagrams.Push(device, marked) ? Put::kQueued : Put::kFull;
}

void PoolQueues::FreeEmpty() {
  for (size_t i = 0; i < used_;) {
    if (queues_[i]->datagrams.empty()) {
      std::swap(queues_[i], queues_[--used_]);
    } else {
      ++i;
    }
  }
}

}  // namespace rocegw::worker
