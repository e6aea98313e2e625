// SPDX-License-Identifier: Apache-2.0
// State of the native halves of connected queue pairs for a gateway that takes over
// (gateway/hand_over/state_stream.h).
#include <algorithm>

#include "gateway/hand_over/state_stream.h"
#include "gateway/transport/native/cnp_sender.h"
#include "gateway/transport/native/requester.h"
#include "gateway/transport/native/responder.h"

namespace rocegw::transport {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

// Limits of lists that the peer's attributes and packets bound otherwise.
constexpr uint32_t kMostAwaited = 1u << 16;
constexpr uint32_t kMostReplies = 1u << 12;
constexpr uint32_t kMostRemembered = 256;

uint32_t PsnsOf(const QpContext& qp, uint32_t bytes) {
  return std::max<uint32_t>(1, (bytes + qp.mtu() - 1) / qp.mtu());
}

}  // namespace

void CnpSender::HandOver(StateStream& state) {
  auto& [next] = *this;
  state(next);
}

void IncomingWrite::HandOver(StateStream& state) {
  auto& [address, rkey, left, length] = *this;
  state(address, rkey, left, length);
  state.Require(left <= length && length <= verbs::kMaxMessage, "WRITE is too long");
}

void Requester::HandOver(StateStream& state, const QpContext& qp, const flow::CcConfig& cc,
                         bool in_use) {
  const StateRecord record(state, StateKind::kRequester);
  auto& [send, cursor, answered, seen_rewinds, since_ack_request, paced_until, rnr_left,
         asked_again, rnr_waiting, flow_state, awaited, rnr_until] = *this;
  state(cursor, answered, seen_rewinds, since_ack_request, paced_until);
  state.Ring(awaited, kMostAwaited, [&](Awaited& response) {
    auto& [next, end, request] = response;
    state(next, end, request);
  });
  state(rnr_left, asked_again, rnr_waiting);
  flow_state.HandOver(state, ProfileOf(cc));
  state(rnr_until);
  // The send queue may be impossible after a failure.
  if (state.reading() && state.ok() && in_use)
    state.Require(IsPossible(qp), "requests and PSNs do not match");
  // A requester that is not in use has the cursor of its last use.
  const auto ahead = static_cast<int32_t>(cursor - send.head());
  if (state.reading() && ahead > static_cast<int32_t>(send.size())) cursor = send.head();
}

// Returns true if every PSN that the requester may send or receive next lies in its request, so
// that offsets computed from PSNs lie in its message.
bool Requester::IsPossible(const QpContext& qp) const {
  if (!qp.sends()) return true;
  if (static_cast<int32_t>(cursor_ - send_.head()) > static_cast<int32_t>(send_.size()))
    return false;
  const auto holds = [](const SendEntry& o, Psn psn) {
    return !PsnBefore(psn, o.first) && !PsnAfter(psn, o.end());
  };
  bool oldest = true;
  for (uint32_t i = send_.head(); i != send_.tail() && send_.At(i).started; ++i) {
    const SendEntry& o = send_.At(i);
    if (o.request.is_local() || o.failed != verbs::WcStatus::kSuccess) continue;
    if (o.psns != (o.request.is_atomic() ? 1 : PsnsOf(qp, o.request.length))) return false;
    if (i == cursor_ && !holds(o, flow_.next())) return false;
    if (o.answered) continue;
    if (oldest && (!holds(o, flow_.una()) || flow_.una() == o.end())) return false;
    oldest = false;
  }
  for (size_t i = 0; i < awaited_.size(); ++i) {
    const Awaited& response = awaited_[i];
    if (!send_.Holds(response.request)) return false;
    const SendEntry& o = send_.At(response.request);
    if (!o.started || !PsnBefore(response.next, response.end) || !holds(o, response.next) ||
        !holds(o, response.end)) {
      return false;
    }
  }
  return true;
}

void Responder::HandOver(StateStream& state, const QpContext& qp) {
  const StateRecord record(state, StateKind::kResponder);
  auto& [receives, replies, held_until, next, msn, placement_ticket, gap_answered, rnr, established,
         message, is_xrc, write, selector, read_ticket, srq, read_srq, remembered,
         next_remembered] = *this;
  // The type of the queue pair fixes it.
  (void)is_xrc;
  state.Ring(replies, kMostReplies, [&](Reply& reply) {
    auto& [kind, syndrome, psn, reply_msn, ticket, repeated, psns, sent, reply_srq, address, rkey,
           length] = reply;
    state.Enum(kind, ReplyKind::kFlush);
    state(syndrome, psn, reply_msn, ticket, repeated, psns, sent, reply_srq, address, rkey, length);
    if (kind != ReplyKind::kRead) return;
    state.Require(length <= verbs::kMaxMessage && psns <= PsnsOf(qp, length) && sent < psns,
                  "READ response is impossible");
  });
  state(held_until, next, msn, placement_ticket, read_ticket, gap_answered, rnr, established);
  state.Enum(message, MessageKind::kWrite);
  write.HandOver(state);
  state(srq, read_srq);
  state.Vector(remembered, kMostRemembered, [&](Remembered& request) {
    auto& [valid, operation, result_known, at, first, psns, ticket, address, rkey, length, result,
           request_msn, request_srq] = request;
    state(valid);
    state.Enum(operation, wire::Operation::kNone);
    state(result_known, at, first, psns, ticket, address, rkey, length, result, request_msn,
          request_srq);
  });
  auto next_slot = static_cast<uint32_t>(next_remembered);
  state(next_slot);
  next_remembered = next_slot;
  if (!state.reading()) return;
  state.Require(next_slot == 0 || next_slot < remembered.size(),
                "remembered requests are impossible");
  if (selector != nullptr && srq != 0) {
    // A shared receive queue that was removed meanwhile takes no further packets.
    if (ReceiveQueue* const entered = selector->Enter(srq); entered != nullptr) receives = entered;
  }
  state.Require(message != MessageKind::kSend || receives->IsOpen(receives->first()),
                "message has no receive");
}

}  // namespace rocegw::transport
