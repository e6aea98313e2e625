// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/rings/receive_slots.h"

#include <cerrno>
#include <cstring>

namespace rocegw::client {

int WriteReceive(const ReceiveSlots& slots, uint32_t slot, const ibv_recv_wr& wr) {
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > slots.max_sge) return EINVAL;
  uint8_t* place = slots.slots + size_t{slot & slots.mask} * slots.stride;
  auto* wqe = reinterpret_cast<rocegw_recv_wqe*>(place);
  *wqe = {wr.wr_id, static_cast<uint32_t>(wr.num_sge), 0};
  if (wr.num_sge != 0) {
    memcpy(place + sizeof(*wqe), wr.sg_list, static_cast<size_t>(wr.num_sge) * sizeof(rocegw_sge));
  }
  return 0;
}

bool ScatterPayload(const ReceiveSlots& slots, const rocegw_cqe& cqe) {
  uint32_t left = cqe.byte_length;
  if (slots.payload == nullptr || left > slots.payload_stride) return false;
  const uint32_t slot = cqe.ring_slot & slots.mask;
  if (slot >= slots.payload_slots) return false;
  const uint8_t* from = slots.payload + size_t{slot} * slots.payload_stride;
  const uint8_t* place = slots.slots + size_t{slot} * slots.stride;
  const auto* wqe = reinterpret_cast<const rocegw_recv_wqe*>(place);
  const auto* sge = reinterpret_cast<const rocegw_sge*>(place + sizeof(*wqe));
  const uint32_t count = wqe->num_sge < slots.max_sge ? wqe->num_sge : slots.max_sge;
  for (uint32_t i = 0; i < count && left != 0; ++i) {
    const uint32_t piece = sge[i].length < left ? sge[i].length : left;
    if (piece == 0) continue;
    uint8_t* to =
        slots.keys->Locate(sge[i].lkey, slots.pd, sge[i].address, piece, IBV_ACCESS_LOCAL_WRITE);
    if (to == nullptr) return false;
    memcpy(to, from, piece);
    from += piece;
    left -= piece;
  }
  return left == 0;
}

}  // namespace rocegw::client
