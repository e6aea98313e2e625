// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/rings/map_rings.h"

#include <cerrno>
#include <cstring>

namespace rocegw::client {

namespace {
bool IsPowerOfTwo(uint32_t value) { return value != 0 && (value & (value - 1)) == 0; }
}  // namespace

int MapSharedQueue(const rocegw_srq_reply& reply, const LocationResolver& resolver,
                   SharedQueue* queue) {
  if (!IsPowerOfTwo(reply.entries) || reply.max_sge > UINT8_MAX) return EPROTO;
  const uint64_t entries = reply.entries;
  queue->entries = reply.entries;
  queue->slots =
      static_cast<uint8_t*>(resolver(reply.slots, entries * rocegw_rq_stride(reply.max_sge)));
  queue->order = static_cast<uint32_t*>(resolver(reply.order, entries * sizeof(uint32_t)));
  return queue->slots != nullptr && queue->order != nullptr ? 0 : EPROTO;
}

int MapSharedRing(const rocegw_srq_reply& reply, const LocationResolver& resolver,
                  SharedRing* ring) {
  SharedQueue queue;
  const int error = MapSharedQueue(reply, resolver, &queue);
  if (error != 0) return error;
  ring->mask = queue.entries - 1;
  ring->stride = rocegw_rq_stride(reply.max_sge);
  ring->max_sge = reply.max_sge;
  ring->slots = queue.slots;
  ring->order = queue.order;
  ring->capacity = queue.entries;
  ring->control =
      static_cast<rocegw_srq_control*>(resolver(reply.control, sizeof(rocegw_srq_control)));
  ring->payload_stride = reply.payload_stride;
  if (reply.payload.length != 0) {
    ring->payload_slots = queue.entries;
    ring->payload = static_cast<const uint8_t*>(
        resolver(reply.payload, uint64_t{queue.entries} * reply.payload_stride));
  }
  const bool whole =
      ring->control != nullptr && (ring->payload != nullptr || reply.payload_stride == 0);
  return whole ? 0 : EPROTO;
}

int MapQpRings(const rocegw_qp_reply& reply, const LocationResolver& resolver,
               const QpMapping& mapping, QpRings* rings) {
  memset(static_cast<void*>(rings), 0, sizeof(*rings));
  const bool has_receive = reply.rq_entries != 0;
  if (!IsPowerOfTwo(reply.sq_entries) || (has_receive && !IsPowerOfTwo(reply.rq_entries)) ||
      reply.doorbell_bit >= ROCEGW_DOORBELL_BITS || reply.max_inline > reply.sq_payload_stride ||
      reply.max_send_sge > UINT8_MAX || reply.max_recv_sge > UINT8_MAX) {
    return EPROTO;
  }
  rings->handle = reply.handle;
  rings->qpn = reply.qpn;
  rings->worker = reply.worker;
  auto* control =
      static_cast<rocegw_qp_control*>(resolver(reply.control, sizeof(rocegw_qp_control)));
  const auto* status =
      static_cast<const rocegw_qp_status*>(resolver(reply.status, sizeof(rocegw_qp_status)));
  Doorbell bell;
  bell.page =
      static_cast<rocegw_doorbell_page*>(resolver(reply.doorbell, sizeof(rocegw_doorbell_page)));
  bell.line = mapping.line;
  bell.wake_fd = mapping.wake_fd;
  bell.lost = mapping.wake_lost;
  bell.bit = reply.doorbell_bit;
  if (control == nullptr || status == nullptr || bell.page == nullptr || bell.line == nullptr) {
    return EPROTO;
  }

  SendRing& send = rings->send;
  send.mask = reply.sq_entries - 1;
  send.stride = rocegw_sq_stride(reply.max_send_sge);
  send.slots = static_cast<uint8_t*>(resolver(reply.sq, uint64_t{reply.sq_entries} * send.stride));
  send.payload_stride = reply.sq_payload_stride;
  send.payload = static_cast<uint8_t*>(
      resolver(reply.sq_payload, uint64_t{reply.sq_entries} * reply.sq_payload_stride));
  if (send.slots == nullptr || (send.payload == nullptr && send.payload_stride != 0)) return EPROTO;
  send.max_sge = reply.max_send_sge;
  send.max_inline = reply.max_inline;
  send.max_message = mapping.max_message;
  send.placement = mapping.placement;
  send.operates = mapping.operates;
  send.control = control;
  send.status = status;
  send.bell = bell;
  send.keys = mapping.keys;
  send.pd = mapping.pd;
  send.qp_type = static_cast<uint8_t>(mapping.qp_type);
  send.signal_all = mapping.signal_all;

  ReceiveRing& receive = rings->receive;
  receive.control = control;
  receive.status = status;
  receive.bell = bell;
  receive.keys = mapping.keys;
  receive.pd = mapping.pd;
  receive.max_sge = reply.max_recv_sge;
  if (has_receive) {
    receive.mask = reply.rq_entries - 1;
    receive.stride = rocegw_rq_stride(reply.max_recv_sge);
    receive.slots =
        static_cast<uint8_t*>(resolver(reply.rq, uint64_t{reply.rq_entries} * receive.stride));
    if (receive.slots == nullptr) return EPROTO;
    if (reply.rq_payload.length != 0) {
      receive.payload_stride = reply.rq_payload_stride;
      receive.payload = static_cast<const uint8_t*>(
          resolver(reply.rq_payload, uint64_t{reply.rq_entries} * reply.rq_payload_stride));
      receive.payload_slots = reply.rq_entries;
      if (receive.payload == nullptr) return EPROTO;
    }
  }
  return 0;
}

}  // namespace rocegw::client
