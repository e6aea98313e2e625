// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/endpoint/endpoint_replies.h"

#include <algorithm>
#include <utility>

#include "gateway/transport/message/frame_packet.h"

namespace rocegw::transport {

using wire::ChannelFrame;
using wire::FrameKind;

void EndpointReplies::Reset() {
  replies_.clear();
  blocked_.clear();
}

size_t EndpointReplies::heap_bytes() const {
  size_t replies = replies_.capacity();
  for (const Blocked& one : blocked_) replies += one.replies.capacity();
  return replies * sizeof(Reply);
}

size_t EndpointReplies::begun() const {
  size_t count = 0;
  const auto count_of = [&](const GrowingRing<Reply>& replies) {
    for (size_t i = 0; i < replies.size(); ++i)
      if (!wire::Aeth{replies[i].syndrome, 0}.is_rnr()) ++count;
  };
  count_of(replies_);
  for (const Blocked& one : blocked_) count_of(one.replies);
  return count;
}

bool EndpointReplies::HasRoomFor(const flow::Carrier& carrier) const {
  if (replies_.size() >= kMost) return false;
  if (blocked_.empty()) return true;
  // A channel has at most as many places as are free: alone it stops at half of them.
  size_t all = 0;
  size_t own = 0;
  for (const Blocked& one : blocked_) {
    all += one.replies.size();
    if (one.carrier == &carrier) own = one.replies.size();
  }
  return own == 0 || own < kMostBlocked - std::min(all, kMostBlocked);
}

// Rebuilds a reply: its FrameRef holds all its fields.
ChannelFrame EndpointReplies::ReplyOf(const flow::FrameRef& frame, Qpn number, Qpn group) {
  return {.kind = FrameKind::kReply,
          .flags = wire::kFrameRelaxed,
          .destination = Qpn{frame.offset & 0xFFFFFF},
          .source = frame.length != 0 ? group : number,
          .syndrome = static_cast<uint8_t>(frame.offset >> 24),
          .attempt = frame.extra,
          .message = frame.message};
}

bool EndpointReplies::MaySend(QpContext& qp, flow::Carrier& carrier, TimePoint now,
                              const PumpBudget& budget) const {
  return budget.last ? carrier.MaySendLast(now) : channels_.MaySend(qp, carrier, 0, now);
}

bool EndpointReplies::Send(QpContext& qp, Outbox& outbox, const Reply& reply, TimePoint now) {
  port::TxPacket* packet = outbox.NewFrame(qp, *reply.carrier, 0);
  if (packet == nullptr) return false;
  flow::FrameRef ref = MakeFrameRef(qp, FrameKind::kReply, reply.message, reply.attempt);
  ref.offset = uint32_t{reply.syndrome} << 24 | reply.to.value;
  ref.length = reply.for_group ? 1 : 0;
  const Psn psn = channels_.OnSent(qp, *reply.carrier, ref, 0, now);
  ChannelFrame frame = ReplyOf(ref, qp.config.qpn, qp.rare.group);
  BuildFrame(qp, reply.carrier->address(), frame, psn, 0, *packet);
  outbox.SendFrame(qp, *reply.carrier, packet);
  qp.worker->counters.ack_tx_packets.Add();
  channels_.Leave(*reply.carrier);
  return true;
}

PumpResult EndpointReplies::Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget) {
  if (!blocked_.empty() && !PumpBlocked(qp, outbox, now, budget)) return PumpResult::kMore;
  bool waits = false;
  for (size_t left = replies_.size(); left != 0; --left) {
    const Reply reply = replies_.front();
    if (!qp.IsDone(reply.ticket)) {
      waits = true;
      replies_.pop_front();
      replies_.push_back(reply);
      continue;
    }
    if (reply.carrier != nullptr) {
      if (!budget.left()) return PumpResult::kMore;
      if (!MaySend(qp, *reply.carrier, now, budget)) {
        // Replies to other gateways need not wait for this channel.
        Block(reply);
      } else if (Send(qp, outbox, reply, now)) {
        budget.Take(0);
      } else {
        return PumpResult::kMore;
      }
    }
    replies_.pop_front();
  }
  return waits || !blocked_.empty() ? PumpResult::kBlocked : PumpResult::kIdle;
}

// A channel without window costs one look, however many replies wait for it.
bool EndpointReplies::PumpBlocked(QpContext& qp, Outbox& outbox, TimePoint now,
                                  PumpBudget& budget) {
  for (size_t i = 0; i < blocked_.size();) {
    Blocked& one = blocked_[i];
    while (!one.replies.empty()) {
      if (!budget.left()) {
        // The other channels come first next time.
        std::swap(one, blocked_.back());
        return false;
      }
      if (!MaySend(qp, *one.carrier, now, budget)) break;
      if (!Send(qp, outbox, one.replies.front(), now)) return false;
      one.replies.pop_front();
      budget.Take(0);
    }
    if (!one.replies.empty()) {
      ++i;
      continue;
    }
    std::swap(one, blocked_.back());
    blocked_.pop_back();
  }
  return true;
}

void EndpointReplies::Block(const Reply& reply) {
  auto of = std::ranges::find(blocked_, reply.carrier, &Blocked::carrier);
  if (of == blocked_.end()) of = blocked_.insert(of, Blocked{.carrier = reply.carrier});
  of->replies.push_back(reply);
}

void EndpointReplies::UnblockAll() {
  for (Blocked& one : blocked_)
    for (; !one.replies.empty(); one.replies.pop_front()) replies_.push_back(one.replies.front());
  blocked_.clear();
}

void EndpointReplies::Silence(const QpContext& qp) {
  UnblockAll();
  KeepIf([&](Reply& reply) {
    if (reply.carrier != nullptr) channels_.Leave(*reply.carrier);
    reply.carrier = nullptr;
    return !qp.IsDone(reply.ticket);
  });
}

void EndpointReplies::DropSilent() {
  KeepIf([](const Reply& reply) { return reply.carrier != nullptr; });
}

void EndpointReplies::OnCarrierLost(const flow::Carrier& carrier) {
  KeepIf([&](const Reply& reply) { return reply.carrier != &carrier; });
  std::erase_if(blocked_, [&](const Blocked& one) { return one.carrier == &carrier; });
}

flow::Resend EndpointReplies::Again(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                                    const flow::FrameRef& frame, Psn psn) const {
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return flow::Resend::kPortFull;
  ChannelFrame reply = ReplyOf(frame, qp.config.qpn, qp.rare.group);
  BuildFrame(qp, carrier.address(), reply, psn, 0, *packet);
  outbox.Send(qp, packet);
  qp.worker->counters.retransmit_packets.Add();
  ++qp.retransmits;
  return flow::Resend::kDone;
}

}  // namespace rocegw::transport
