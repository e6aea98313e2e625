// SPDX-License-Identifier: Apache-2.0
// State of queue pairs for a gateway that takes over (gateway/hand_over/state_stream.h): what all
// types share.
#include "gateway/flow/carrier_names.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/transport/queue_pair.h"
#include "gateway/verbs/work_request_state.h"

namespace rocegw::transport {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

// Fails if the reader's queue pair has queues of other sizes, which state that is read would leave.
void HandOverShape(StateStream& state, const QpContext& qp) {
  const uint32_t shape[] = {qp.payload.sq_entries,        qp.payload.sq_payload_stride,
                            qp.rare.rq_entries,           qp.config.rq_payload_stride,
                            qp.config.max_send_sge,       qp.config.max_recv_sge,
                            qp.shares_receives ? 1u : 0u, qp.rare.max_inline};
  for (const uint32_t size : shape)
    state.Require(state.Carry(size) == size, "queue pair of another size");
}

}  // namespace

void CarriedCount::HandOver(StateStream& state, uint64_t& carried) {
  auto& [low] = *this;
  state(low, carried);
}

void QpContext::HandOver(StateStream& state) {
  const StateRecord record(state, StateKind::kQpContext);
  auto& [own_handle, by, record_of_session, tables, issued, done, cq_of_sends, control_page,
         status_page, sends, receives_ring, cq_of_receives, place, connection_count, is_flushed,
         reports_drained, has_leftovers, takes_shared, uses_ecn, relaxes, invalidates, places,
         operates, native, on_channel, takes_receives, rests, requests_go_first, has_window,
         lacks_room, asks, path, sent, received, completed_sends, completed_receives,
         message_config, attribute_set, payload_config, rare_config, high, shared, peer_table,
         paths, resent, unacknowledged, not_asked, ticket_after_reset, last_reported,
         why_declined] = *this;
  // Links and configuration, which whoever makes the queue pair sets before its state is read.
  (void)own_handle, (void)by, (void)record_of_session, (void)tables, (void)cq_of_sends;
  (void)cq_of_receives, (void)control_page, (void)status_page, (void)takes_shared;
  // MessageRequester writes the path.
  (void)path;
  (void)has_window, (void)message_config, (void)payload_config, (void)rare_config, (void)shared;
  (void)peer_table, (void)paths;
  sends.HandOver(state);
  receives_ring.HandOver(state);
  state(issued, done, connection_count);
  state.Require(issued == done, "memory operations are outstanding");
  is_flushed = state.Carry<bool>(is_flushed);
  reports_drained = state.Carry<bool>(reports_drained);
  has_leftovers = state.Carry<bool>(has_leftovers);
  uses_ecn = state.Carry<bool>(uses_ecn);
  relaxes = state.Carry<bool>(relaxes);
  invalidates = state.Carry<bool>(invalidates);
  places = state.Carry<bool>(places);
  if (record.version() >= 2) operates = state.Carry<bool>(operates);
  native = state.Carry<bool>(native);
  // Requests that a program has posted, but not rung for, are not looked at by either gateway.
  if (record.version() >= 3) {
    rests = state.Carry<bool>(rests);
    on_channel = state.Carry<bool>(on_channel);
    takes_receives = state.Carry<bool>(takes_receives);
  }
  requests_go_first = state.Carry<bool>(requests_go_first);
  lacks_room = state.Carry<bool>(lacks_room);
  asks = state.Carry<bool>(asks);
  sent.HandOver(state, high.bytes_sent);
  received.HandOver(state, high.bytes_received);
  completed_sends.HandOver(state, high.sends_completed);
  completed_receives.HandOver(state, high.receives_completed);
  verbs::HandOver(state, attribute_set);
  state(resent, unacknowledged, not_asked, ticket_after_reset, last_reported);
  flow::HandOver(state, place);
  state.Enum(why_declined, static_cast<wire::ChannelReason>(
                               static_cast<uint8_t>(wire::ChannelReason::kCount) - 1));
}

void QueuePair::HandOver(StateStream& state, flow::CarrierNames& names) {
  const StateRecord record(state, StateKind::kQueuePair);
  // The reader has made the queue pair from its configuration.
  HandOverShape(state, qp_);
  state.Require(state.Carry(qp_.config.qpn.value) == qp_.config.qpn.value,
                "state of another queue pair");
  state.Require(
      state.Carry(static_cast<uint8_t>(qp_.config.type)) == static_cast<uint8_t>(qp_.config.type),
      "queue pair of another type");
  qp_.HandOver(state);
  DoHandOver(state, names);
}

void QueuePair::DoHandOver(StateStream& state, flow::CarrierNames&) {
  state.Fail("queue pairs of this type are not handed over");
}

}  // namespace rocegw::transport
