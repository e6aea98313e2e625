// SPDX-License-Identifier: Apache-2.0
// State of send and receive queues for a gateway that takes over
// (gateway/hand_over/state_stream.h).
#include "gateway/hand_over/state_stream.h"
#include "gateway/transport/queues/receive_queue.h"
#include "gateway/transport/queues/send_queue.h"
#include "gateway/transport/queues/shared_receives.h"
#include "gateway/verbs/work_request_state.h"

namespace rocegw::transport {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

// Limit of the entries of a ring (verbs/qp_config.h).
constexpr uint32_t kMostEntries = 1u << 15;
constexpr uint32_t kMostSharedReceives = 1u << 20;

void HandOverEntry(StateStream& state, SendEntry& entry, const QpContext& qp) {
  auto& [request, ticket, first, psns, sent, received, receive, taken, failed, attempt, has_ticket,
         started, answered, handed_over, asked, completed] = entry;
  verbs::HandOver(state, request, qp.payload);
  state(ticket, first, psns, sent, received, receive);
  // The time of the fetch, in ticks before now.
  const uint32_t now = SendEntry::TicksAt(state.now());
  taken = now - state.Carry(now - taken);
  state.Enum(failed, verbs::WcStatus::kGeneral);
  state(attempt);
  has_ticket = state.Carry<bool>(has_ticket);
  started = state.Carry<bool>(started);
  answered = state.Carry<bool>(answered);
  handed_over = state.Carry<bool>(handed_over);
  asked = state.Carry<bool>(asked);
  completed = state.Carry<bool>(completed);
}

}  // namespace

void SendQueue::HandOver(StateStream& state, QpContext& qp) {
  const StateRecord record(state, StateKind::kSendQueue);
  auto& [ring, head, tail, mask, reading, stride, max_sge, flushing, flush_ticket, room, early] =
      *this;
  (void)ring, (void)mask, (void)stride, (void)max_sge, (void)room;  // configuration
  state(head, tail, reading, flushing, flush_ticket);
  state.Require(
      tail - head <= mask + 1u && head == qp.send_ring.released && tail == qp.send_ring.fetched,
      "indices of the send queue are impossible");
  for (uint32_t i = head; state.ok() && i != tail; ++i) {
    if (state.reading()) std::construct_at(&At(i));
    HandOverEntry(state, At(i), qp);
    state.Require(At(i).request.ring_slot == i, "request of another slot");
    verbs::HandOver(state, SgesOf(i), At(i).request.sge_count);
  }
  state.Ring(early, 2 * kMostEntries, [&](uint32_t& index) { state(index); });
}

void SharedReceives::HandOver(StateStream& state) {
  const StateRecord record(state, StateKind::kSharedReceives);
  auto& [config, released, order, returned, next, limit, taken, limit_events] = *this;
  state(released);
  order.HandOver(state);
  const uint32_t slots = config.entries;
  state.Vector(returned, kMostSharedReceives, [&](uint32_t& slot) {
    state(slot);
    state.Require(slot < slots, "receive of no slot");
  });
  state(next, limit, taken, limit_events);
}

void ReceiveQueue::HandOver(StateStream& state, const QpContext& qp) {
  const StateRecord record(state, StateKind::kReceiveQueue);
  auto& [first, next, in_flight, out_of_turn] = *this;
  state(first, next);
  const uint32_t count =
      state.Count(in_flight == nullptr ? 0 : in_flight->open.size(), 2 * kMostEntries);
  state.Require(count == next - first, "numbers of receives are impossible");
  // A completion is pending only while memory operations are outstanding.
  state.Require(in_flight == nullptr || in_flight->pending.empty(), "receives are being completed");
  if (state.reading()) {
    in_flight.reset();
    if (count != 0 && state.ok()) in_flight = std::make_unique<ReceivesInFlight>();
  }
  for (uint32_t i = 0; state.ok() && i < count; ++i) {
    if (state.reading()) {
      in_flight->open.push_back({});
      for (uint32_t k = Stride(qp.config.max_recv_sge); k != 0; --k) in_flight->sges.push_back({});
    }
    auto& [request, received, status, closed] = in_flight->open[i];
    verbs::HandOver(state, request);
    // The slot goes back to the shared receive queue, which reads it.
    state.Require(!qp.shares_receives || request.ring_slot < qp.srq->config().entries,
                  "receive of no slot");
    verbs::HandOver(state, SgesOf(qp, first + i).first(qp.config.max_recv_sge), request.sge_count);
    state(received);
    state.Enum(status, verbs::WcStatus::kGeneral);
    state(closed);
  }
  if (!state.Carry(out_of_turn != nullptr) || !state.ok()) return;
  if (out_of_turn == nullptr) out_of_turn = std::make_unique<OutOfTurn>();
  auto& [order, newest, unused, early, early_count] = *out_of_turn;
  (void)order;  // fixed by the type of the queue pair
  state(newest, early_count);
  std::vector<bool> listed(count);
  state.Vector(unused, 2 * kMostEntries, [&, &oldest = first, &open = in_flight](uint32_t& number) {
    state(number);
    const uint32_t at = number - oldest;
    if (!state.Require(at < count && open->open[at].closed && !listed[at], "receive is in use"))
      return;
    listed[at] = true;
  });
  const uint32_t slots = state.Count(early.size(), kMostEntries);
  if (state.reading()) early.assign(slots, false);
  uint32_t set = 0;
  for (uint32_t i = 0; i < slots; ++i) {
    early[i] = state.Carry<bool>(early[i]);
    set += early[i] ? 1 : 0;
  }
  state.Require(set == early_count && (slots == 0 || slots == qp.receive_ring.entries),
                "slots of receives are impossible");
}

}  // namespace rocegw::transport
