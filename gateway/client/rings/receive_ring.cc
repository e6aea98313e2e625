// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/rings/receive_ring.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/rings/shared_word.h"

namespace rocegw::client {

int PostReceive(ReceiveRing& ring, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  int error = 0;
  {
    SpinGuard guard(ring.lock);
    const uint32_t first = ring.producer;
    if (ring.state == IBV_QPS_RESET || ring.slots == nullptr) error = EINVAL;
    while (error == 0 && wr != nullptr) {
      if (wr->num_sge < 0 || static_cast<uint32_t>(wr->num_sge) > ring.max_sge) {
        error = EINVAL;
      } else if (ring.producer - LoadAcquire(&ring.polled) > ring.mask) {
        error = ENOMEM;
      }
      if (error != 0) break;
      uint8_t* place = ring.slots + size_t{ring.producer & ring.mask} * ring.stride;
      auto* wqe = reinterpret_cast<rocegw_recv_wqe*>(place);
      *wqe = {wr->wr_id, static_cast<uint32_t>(wr->num_sge), 0};
      if (wr->num_sge != 0) {
        memcpy(place + sizeof(*wqe), wr->sg_list,
               static_cast<size_t>(wr->num_sge) * sizeof(rocegw_sge));
      }
      ++ring.producer;
      wr = wr->next;
    }
    if (error != 0) *bad = wr;
    if (ring.producer == first) return error;
    // Sequentially consistent on both sides: either the worker that goes starved sees the index, or
    // we see its mark.
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

bool ScatterPayload(const ReceiveRing& ring, const rocegw_cqe& cqe) {
  uint32_t left = cqe.byte_length;
  if (ring.payload == nullptr || left > ring.payload_stride) return false;
  const uint32_t slot = cqe.ring_slot & ring.mask;
  const uint8_t* from = ring.payload + size_t{slot} * ring.payload_stride;
  const uint8_t* place = ring.slots + size_t{slot} * ring.stride;
  const auto* wqe = reinterpret_cast<const rocegw_recv_wqe*>(place);
  const auto* sge = reinterpret_cast<const rocegw_sge*>(place + sizeof(*wqe));
  const uint32_t count = wqe->num_sge < ring.max_sge ? wqe->num_sge : ring.max_sge;
  for (uint32_t i = 0; i < count && left != 0; ++i) {
    const uint32_t piece = sge[i].length < left ? sge[i].length : left;
    if (piece == 0) continue;
    uint8_t* to =
        ring.keys->Locate(sge[i].lkey, ring.pd, sge[i].address, piece, IBV_ACCESS_LOCAL_WRITE);
    if (to == nullptr) return false;
    memcpy(to, from, piece);
    from += piece;
    left -= piece;
  }
  return left == 0;
}

}  // namespace rocegw::client
