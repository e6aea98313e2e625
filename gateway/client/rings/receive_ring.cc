// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/rings/receive_ring.h"

#include <cerrno>
#include <cstdlib>

#include "gateway/client/rings/shared_word.h"

namespace rocegw::client {

int PostReceive(ReceiveRing& ring, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  int error = 0;
  {
    SpinGuard guard(ring.lock);
    const uint32_t first = ring.producer;
    if (ring.state == IBV_QPS_RESET || ring.slots == nullptr) error = EINVAL;
    while (error == 0 && wr != nullptr) {
      const bool full = ring.producer - LoadAcquire(&ring.polled) > ring.mask;
      error = full ? ENOMEM : WriteReceive(ring, ring.producer, *wr);
      if (error != 0) break;
      ++ring.producer;
      wr = wr->next;
    }
    if (error != 0) *bad = wr;
    if (ring.producer == first) return error;
    // Sequentially consistent on both sides: either the worker that runs out of receives sees the
    // index, or we see its mark.
    StoreOrdered(&ring.control->rq_producer, ring.producer);
    FullFence();
  }
  if (LoadOrdered(&ring.status->rq_starved) != 0 ||
      LoadRelaxed(&ring.status->state) == uint32_t{IBV_QPS_ERR}) {
    Ring(ring.bell);
  }
  return error;
}

int ExpectAnyOrder(ReceiveRing& ring) {
  ring.early = static_cast<uint8_t*>(calloc(ring.mask + 1, 1));
  return ring.early != nullptr ? 0 : ENOMEM;
}

void MarkPolled(ReceiveRing& ring, uint32_t slot) {
  uint32_t polled = slot + 1;
  if (ring.early != nullptr) {
    ring.early[slot & ring.mask] = 1;
    for (polled = ring.polled; ring.early[polled & ring.mask] != 0; ++polled) {
      ring.early[polled & ring.mask] = 0;
    }
  }
  StoreRelease(&ring.polled, polled);
}

}  // namespace rocegw::client
