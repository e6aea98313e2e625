// SPDX-License-Identifier: Apache-2.0
#include "gateway/verbs/work_request_state.h"

#include "gateway/wire/path_state.h"

namespace rocegw::verbs {

using hand_over::StateStream;

void HandOver(StateStream& state, QpAttributes& attributes) {
  auto& [dest_qpn, access, qp_state, path_mtu, timeout, retry_count, max_rd_atomic,
         max_dest_rd_atomic, min_rnr_timer, rnr_retry, pkey_index, port, service_level, sgid_index,
         current_state, sqd_notify, sq_draining, qkey, rq_psn, sq_psn, flow_label, path] =
      attributes;
  state(dest_qpn, access);
  state.Enum(qp_state, QpState::kError);
  state(path_mtu, timeout, retry_count, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, rnr_retry,
        pkey_index, port, service_level, sgid_index);
  state.Enum(current_state, QpState::kError);
  state(sqd_notify, sq_draining, qkey, rq_psn, sq_psn, flow_label);
  wire::HandOver(state, path);
  // enum ibv_mtu
  state.Require(path_mtu >= 1 && path_mtu <= 5, "path MTU out of range");
}

void HandOver(StateStream& state, SendRequest& request, const QpPayloadConfig& payload) {
  auto& [wr_id, ring_payload, remote_address, compare_add, swap, rkey, length, immediate, peer,
         ring_slot, flags, opcode, sge_count] = request;
  (void)sge_count;  // handed over with the SGE list
  const bool in_ring = state.Carry(ring_payload != nullptr);
  state(wr_id, remote_address, compare_add, swap, rkey, length, immediate, peer, ring_slot, flags);
  state.Enum(opcode, SendOpcode::kFetchSubtract);
  state.Require(length <= kMaxMessage, "message is too long");
  if (!state.reading()) return;
  ring_payload = nullptr;
  if (!in_ring || !state.Require(length <= payload.sq_payload_stride, "payload exceeds its slot"))
    return;
  ring_payload = payload.sq_payload + static_cast<size_t>(ring_slot & (payload.sq_entries - 1u)) *
                                          payload.sq_payload_stride;
}

void HandOver(StateStream& state, DatagramRequest& request, const QpPayloadConfig& payload) {
  HandOver(state, static_cast<SendRequest&>(request), payload);
  auto& [dgid, flow_label, sgid_index, traffic_class, hop_limit, reserved] = request.av;
  (void)reserved;
  state.Bytes(dgid);
  state(flow_label, sgid_index, traffic_class, hop_limit, request.remote_qpn, request.remote_qkey);
}

void HandOver(StateStream& state, ReceiveRequest& request) {
  auto& [wr_id, capacity, ring_slot, sge_count] = request;
  (void)sge_count;  // handed over with the SGE list
  state(wr_id, capacity, ring_slot);
}

void HandOver(StateStream& state, std::span<rocegw_sge> sges, uint8_t& count) {
  count = static_cast<uint8_t>(state.Count(count, static_cast<uint32_t>(sges.size())));
  for (rocegw_sge& sge : sges.first(count)) {
    auto& [address, length, lkey] = sge;
    state(address, length, lkey);
  }
}

}  // namespace rocegw::verbs
