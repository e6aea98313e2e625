// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/endpoint/endpoint_target.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "gateway/transport/message/frame_packet.h"
#include "gateway/transport/queues/shared_receives.h"

namespace rocegw::transport {

using metrics::DropReason;
using verbs::WcStatus;
using wire::ChannelFrame;
using wire::FrameKind;
using wire::NakCode;
using wire::SyndromeOf;

namespace {
// RNR timer code of refusals: 0.64 ms (IBTA table 46). A receive is usually posted soon.
constexpr uint8_t kRefusalTimer = 12;

bool IsForGroup(const QpContext& qp, const ChannelFrame& frame) {
  return frame.destination != qp.config.qpn;
}

bool IsRead(FrameKind kind) {
  return kind == FrameKind::kReadRequest || kind == FrameKind::kCompareSwap ||
         kind == FrameKind::kFetchAdd || kind == FrameKind::kFetchOperate;
}

bool WantsReply(const ChannelFrame& frame) {
  return IsRead(frame.kind) || (frame.flags & wire::kFrameNoReply) == 0;
}
}  // namespace

void EndpointTarget::Reset() {
  in_flight_.clear();
  places_.clear();
  spare_.clear();
  replies_.clear();
  blocked_.clear();
  answers_.Reset();
  idle_at_ = drained_by_ = kNever;
  drains_ = reports_ = false;
}

uint32_t EndpointTarget::under_way() const {
  size_t count = in_flight_.size() + answers_.size();
  const auto count_of = [&](const GrowingRing<Reply>& replies) {
    for (size_t i = 0; i < replies.size(); ++i)
      if (!wire::Aeth{replies[i].syndrome, 0}.is_rnr()) ++count;
  };
  count_of(replies_);
  for (const Blocked& one : blocked_) count_of(one.replies);
  return static_cast<uint32_t>(count);
}

size_t EndpointTarget::records_bytes() const {
  size_t replies = replies_.capacity();
  for (const Blocked& one : blocked_) replies += one.replies.capacity();
  return in_flight_.size() * kHeapOfRecord + replies * sizeof(Reply) + answers_.heap_bytes();
}

void EndpointTarget::Flush() {
  for (auto& [key, record] : in_flight_) record.has_receive = false;
  spare_.clear();
  idle_at_ = drained_by_ = kNever;
}

void EndpointTarget::SetDrains(bool drains, TimePoint now) {
  drains_ = drains;
  drained_by_ = drains ? now + kLongestDrain : kNever;
  if (drains && !in_flight_.empty()) idle_at_ = Earlier(idle_at_, now);
}

bool EndpointTarget::DrainIsOver(TimePoint now) {
  if (now < drained_by_) return false;
  drained_by_ = now + kLongestDrain;
  return true;
}

void EndpointTarget::EndDrain(QpContext& qp) {
  for (auto& [key, record] : in_flight_) GiveBack(qp, record);
  in_flight_.clear();
  places_.clear();
  answers_.ForgetAll();
  UnblockAll();
  for (size_t left = replies_.size(); left != 0; --left) {
    Reply reply = replies_.front();
    replies_.pop_front();
    if (reply.carrier != nullptr) channels_.Leave(*reply.carrier);
    reply.carrier = nullptr;
    if (!qp.IsDone(reply.ticket)) replies_.push_back(reply);
  }
}

TimePoint EndpointTarget::IdleAt(const QpContext& qp, const Record& record) const {
  if (qp.shares_receives && record.has_receive) return record.touched + kIdle;
  return drains_ ? record.touched + kOld : kNever;
}

uint32_t EndpointTarget::receives_left(const QpContext& qp) const {
  return static_cast<uint32_t>(spare_.size()) +
         (qp.shares_receives ? qp.srq->waiting() : qp.rq().Posted());
}

bool EndpointTarget::TakeReceive(QpContext& qp, Outbox& outbox, Record& record) {
  if (record.has_receive) return true;
  const bool none = spare_.empty() && (qp.shares_receives ? qp.srq->Check() : qp.rq().Check()) ==
                                          shm::WorkQueue::Look::kEmpty;
  // Messages that will never be whole may hold receives.
  if (none && MaySearch(idle_search_at_, outbox.now())) TakeFromIdle(qp, outbox.now());
  if (!spare_.empty()) {
    record.message.receive = spare_.back();
    spare_.pop_back();
    // Writes of the attempt that had it may still be on their way.
    record.ticket = qp.tickets_issued;
  } else if (receives_.Open(qp, outbox) == shm::WorkQueue::Look::kReady) {
    record.message.receive = receives_.newest();
  } else {
    return false;
  }
  record.has_receive = true;
  return true;
}

void EndpointTarget::GiveBack(QpContext& qp, Record& record) {
  if (!record.has_receive) return;
  record.has_receive = false;
  if (qp.shares_receives && qp.IsDone(record.ticket)) {
    receives_.Return(qp, record.message.receive);
  } else {
    spare_.push_back(record.message.receive);
  }
}

void EndpointTarget::OnMemoryDone(QpContext& qp) {
  if (!qp.shares_receives || spare_.empty() || !qp.IsDone(qp.tickets_issued)) return;
  for (const uint32_t number : spare_) receives_.Return(qp, number);
  spare_.clear();
}

void EndpointTarget::OnDeadline(QpContext& qp, TimePoint now) {
  answers_.OnDeadline(now);
  if (now < idle_at_) return;
  if (qp.shares_receives) TakeFromIdle(qp, now);
  if (drains_) ForgetOld(qp, now);
  idle_at_ = kNever;
  for (const auto& [key, record] : in_flight_) idle_at_ = Earlier(idle_at_, IdleAt(qp, record));
}

void EndpointTarget::ListBegun(std::vector<MessageName>& begun) const {
  for (const auto& [key, record] : in_flight_)
    if (record.for_group) begun.push_back({key.carrier, key.source, key.message, record.attempt});
}

// Takes receives from idle messages, because their senders may have died. A message that continues
// after all is refused and begins again.
void EndpointTarget::TakeFromIdle(QpContext& qp, TimePoint now) {
  for (auto& [key, record] : in_flight_) {
    if (!record.has_receive || record.touched + kIdle > now) continue;
    GiveBack(qp, record);
    record.message.refused = true;
  }
}

// Drops records of messages that made no progress for kOld: they will never be whole.
void EndpointTarget::ForgetOld(QpContext& qp, TimePoint now) {
  for (auto at = in_flight_.begin(); at != in_flight_.end();) {
    const bool old = at->second.touched + kOld <= now;
    if (old) GiveBack(qp, at->second);
    at = old ? Erase(at) : std::next(at);
  }
}

// A search visits all messages, so frames that find nothing must not cause one each.
bool EndpointTarget::MaySearch(TimePoint& next, TimePoint now) {
  if (now < next) return false;
  next = now + kSearch;
  return true;
}

EndpointTarget::Records::iterator EndpointTarget::Erase(Records::iterator at) {
  places_.Remove(at->first.carrier->peer());
  return in_flight_.erase(at);
}

bool EndpointTarget::MakeRoom(QpContext& qp, const flow::Carrier& carrier, TimePoint now) {
  if (in_flight_.size() < kMostUnderWay) return true;
  if (MaySearch(old_search_at_, now)) ForgetOld(qp, now);
  if (in_flight_.size() >= kMostUnderWay) {
    const PeerCounts::Count most = places_.Most();
    if (most.count > places_.Of(carrier.peer()) + 2 * kEvicted) Evict(qp, most.peer);
  }
  return in_flight_.size() < kMostUnderWay;
}

// Takes places from a peer gateway that has more than kEvicted. Its messages that rested longest
// are refused, so that they come again.
void EndpointTarget::Evict(QpContext& qp, const wire::Gid& peer) {
  std::vector<std::pair<TimePoint, Key>> its;
  for (const auto& [key, record] : in_flight_)
    if (key.carrier->peer() == peer) its.emplace_back(record.touched, key);
  std::partial_sort(its.begin(), its.begin() + kEvicted, its.end(),
                    [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < kEvicted; ++i) {
    const Key& key = its[i].second;
    const auto found = in_flight_.find(key);
    Record& record = found->second;
    GiveBack(qp, record);
    if (MayAnswer(*key.carrier)) {
      RefuseForNow(qp, *key.carrier,
                   {.kind = record.message.kind,
                    .destination = record.for_group ? qp.rare.group : qp.config.qpn,
                    .source = Qpn{key.source},
                    .attempt = record.attempt,
                    .message = key.message});
    }
    Erase(found);
  }
}

DropReason EndpointTarget::OnFrame(QpContext& qp, Outbox& outbox, flow::Carrier& carrier,
                                   const ChannelFrame& frame, std::span<const uint8_t> payload,
                                   bool refuse) {
  if (WantsReply(frame) && !MayAnswer(carrier)) return DropReason::k_replies_full;
  const bool for_group = IsForGroup(qp, frame);
  if (frame.receive != (for_group ? qp.rare.group_key : qp.attributes.qkey)) {
    Answer(qp, carrier, frame, SyndromeOf(NakCode::kRemoteAccess), {});
    return DropReason::k_wrong_qkey;
  }
  const bool single = frame.offset == 0 && frame.has(wire::kFrameLast);
  const Key key{&carrier, frame.source.value, frame.message};
  if (drains_ && (IsRead(frame.kind) || single || !in_flight_.contains(key))) refuse = true;
  if (IsRead(frame.kind)) return TakeRead(qp, outbox, carrier, frame, refuse);
  // Nothing limits their number at the sender, so what does not fit here is dropped.
  if (!WantsReply(frame) && (refuse || !single || replies_.size() >= kMostUnderWay))
    return DropReason::k_rnr_wait;
  Record alone;
  Record* record = &alone;
  if (!single) {
    auto found = in_flight_.find(key);
    if (found == in_flight_.end()) {
      if (refuse || !outbox.MayRecord(qp) || !MakeRoom(qp, carrier, outbox.now())) {
        RefuseForNow(qp, carrier, frame);
        return DropReason::k_rnr_wait;
      }
      found = in_flight_.try_emplace(key).first;
      places_.Add(carrier.peer());
    } else if (const auto newer = static_cast<int8_t>(frame.attempt - found->second.attempt);
               newer < 0) {
      return DropReason::k_rnr_wait;
    } else if (newer > 0) {
      GiveBack(qp, found->second);
      found->second = {};
    }
    record = &found->second;
  }
  IncomingMessage& message = record->message;
  if (!message.seen()) {
    message.Begin(frame);
    record->serial = ++serial_;
    record->attempt = frame.attempt;
    record->for_group = for_group;
    record->ticket = qp.tickets_done;
  } else if (message.kind != frame.kind || message.length != frame.length ||
             message.address != frame.address || message.rkey != frame.rkey ||
             payload.size() > message.length - message.arrived) {
    // Also frames that overlap: more bytes have arrived than the message has.
    message.nak = SyndromeOf(NakCode::kInvalidRequest);
  }
  record->touched = outbox.now();
  message.refused |= refuse;
  if (!message.refused && message.nak == 0) Take(qp, outbox, *record, frame, payload);
  message.arrived +=
      std::min(static_cast<uint32_t>(payload.size()), message.length - message.arrived);
  if (message.refused) {
    GiveBack(qp, *record);
    RefuseForNow(qp, carrier, frame);
    if (!single) Erase(in_flight_.find(key));
    return DropReason::k_rnr_wait;
  }
  if (message.whole() || message.nak != 0) {
    Finish(qp, outbox, *record, carrier, frame);
    if (!single) Erase(in_flight_.find(key));
  } else {
    idle_at_ = Earlier(idle_at_, IdleAt(qp, *record));
  }
  return DropReason::kNone;
}

// Takes a READ or atomic. A refusal happens before execution only, so no atomic executes twice.
DropReason EndpointTarget::TakeRead(QpContext& qp, Outbox& outbox, flow::Carrier& carrier,
                                    const ChannelFrame& frame, bool refuse) {
  if (refuse || !answers_.HasRoomFor(carrier, frame.source)) {
    RefuseForNow(qp, carrier, frame);
    return DropReason::k_rnr_wait;
  }
  const Qpn as = IsForGroup(qp, frame) ? qp.rare.group : qp.config.qpn;
  if (const auto nak = answers_.Take(qp, outbox, carrier, frame, ++serial_, as)) {
    qp.worker->counters.nak_error_tx_packets.Add();
    Answer(qp, carrier, frame, SyndromeOf(*nak), {});
  }
  return DropReason::kNone;
}

void EndpointTarget::Take(QpContext& qp, Outbox& outbox, Record& record, const ChannelFrame& frame,
                          std::span<const uint8_t> payload) {
  if (record.message.takes_receive() && !TakeReceive(qp, outbox, record)) {
    record.message.refused = true;
    return;
  }
  if (record.message.kind == FrameKind::kSend) {
    TakeSend(qp, outbox, record, frame, payload);
  } else {
    TakeWrite(qp, outbox, record, frame, payload);
  }
  if (record.message.nak == 0) qp.CountBytesReceived(payload.size());
}

void EndpointTarget::TakeSend(QpContext& qp, Outbox& outbox, Record& record,
                              const ChannelFrame& frame, std::span<const uint8_t> payload) {
  IncomingMessage& message = record.message;
  OpenReceive& receive = receives_.At(message.receive);
  if (receive.status == WcStatus::kSuccess && !receives_.Writable(qp, message.receive))
    receive.status = WcStatus::kLocalProtection;
  if (receive.status != WcStatus::kSuccess) {
    message.nak = SyndromeOf(NakCode::kRemoteOperation);
    message.receive_status = receive.status;
    qp.worker->counters.wqe_bad_requests.Add();
    return;
  }
  if (message.length > receive.request.capacity) {
    message.nak = SyndromeOf(NakCode::kInvalidRequest);
    return;
  }
  if (payload.size() == message.length && receives_.FitsRing(qp, message.receive, payload.size()) &&
      receives_.OwnsNextSlot(qp, message.receive)) {
    receives_.PlaceInRing(qp, message.receive, payload);
    message.in_ring = true;
  } else if (!receives_.Place(qp, outbox, message.receive, frame.offset, payload,
                              {.request = record.serial, .on_channel = true}, record.ticket)) {
    message.nak = SyndromeOf(NakCode::kRemoteOperation);
    message.receive_status = WcStatus::kLocalProtection;
  }
}

void EndpointTarget::TakeWrite(QpContext& qp, Outbox& outbox, Record& record,
                               const ChannelFrame& frame, std::span<const uint8_t> payload) {
  IncomingMessage& message = record.message;
  const auto bytes = static_cast<uint32_t>(payload.size());
  if (bytes == 0) return;
  // The last bytes become visible after all others: programs poll on them.
  const bool completes = message.arrived + bytes == message.length;
  uint32_t now = bytes;
  if (frame.has(wire::kFrameLast) && !completes) {
    message.tail_length = static_cast<uint8_t>(std::min(bytes, IncomingMessage::kTail));
    now = bytes - message.tail_length;
    std::memcpy(&message.tail, payload.data() + now, message.tail_length);
  }
  if (now != 0) {
    Place(qp, outbox, record, frame.offset, payload.first(now),
          frame.has(wire::kFrameLast) && completes);
  }
}

void EndpointTarget::Place(QpContext& qp, Outbox& outbox, Record& record, uint32_t offset,
                           std::span<const uint8_t> bytes, bool publish) {
  IncomingMessage& message = record.message;
  // The whole message must lie in the region, whichever part arrives first.
  const std::optional<verbs::RemotePlace> whole =
      qp.worker->regions.FindRemote(qp.user(), MemoryKey{message.rkey}, verbs::kAccessRemoteWrite,
                                    message.address, message.length);
  const std::optional<verbs::RemotePlace> place =
      qp.worker->regions.FindRemote(qp.user(), MemoryKey{message.rkey}, verbs::kAccessRemoteWrite,
                                    message.address + offset, bytes.size());
  if (!whole.has_value() || !place.has_value()) {
    message.nak = SyndromeOf(NakCode::kRemoteAccess);
    return;
  }
  memory::MemoryOp op{.kind = memory::OpKind::kWrite,
                      .publish = publish,
                      .length = static_cast<uint32_t>(bytes.size()),
                      .address = place->address,
                      .direct = place->direct};
  if (bytes.data() == reinterpret_cast<const uint8_t*>(&message.tail)) {
    std::memcpy(&op.compare, bytes.data(), bytes.size());
  } else {
    op.buffer = const_cast<uint8_t*>(bytes.data());
  }
  outbox.Access(qp, op,
                {.qp = qp.handle,
                 .ticket = ++qp.tickets_issued,
                 .purpose = AccessPurpose::kWrite,
                 .request = record.serial,
                 .on_channel = true},
                nullptr);
  record.ticket = qp.tickets_issued;
}

void EndpointTarget::Finish(QpContext& qp, Outbox& outbox, Record& record, flow::Carrier& carrier,
                            const ChannelFrame& frame) {
  IncomingMessage& message = record.message;
  if (message.nak == 0 && message.tail_length != 0) {
    Place(qp, outbox, record, message.length - message.tail_length,
          {reinterpret_cast<const uint8_t*>(&message.tail), message.tail_length}, true);
  }
  record.ticket = qp.Near(record.ticket);
  if (message.nak != 0) {
    // A receive that is bad itself is used up; a good one is kept for the next message.
    if (message.receive_status != WcStatus::kSuccess) {
      receives_.CloseFailed(qp, message.receive, message.receive_status, record.ticket);
      receives_.OnMemoryDone(qp, outbox);
    } else {
      GiveBack(qp, record);
    }
    qp.worker->counters.nak_error_tx_packets.Add();
    Answer(qp, carrier, frame, message.nak, {});
    return;
  }
  Answer(qp, carrier, frame, wire::kSyndromeAck, record);
  if (!message.takes_receive()) return;
  receives_.CloseReceived(qp, outbox, message.receive,
                          {.write = message.kind == FrameKind::kWrite,
                           .has_immediate = (message.flags & wire::kFrameImmediate) != 0,
                           .solicited = (message.flags & wire::kFrameSolicited) != 0,
                           .in_ring = message.in_ring,
                           .length = message.length,
                           .immediate = message.immediate,
                           .source = frame.source},
                          record.ticket);
}

void EndpointTarget::Answer(QpContext& qp, flow::Carrier& carrier, const ChannelFrame& frame,
                            uint8_t syndrome, const Record& record) {
  const bool silent = !WantsReply(frame);
  // A message whose bytes are being placed needs a record until then, because memory may fault.
  if (silent && (syndrome != wire::kSyndromeAck || qp.IsDone(record.ticket))) return;
  if (!silent) channels_.Use(carrier);
  Reply reply{.carrier = silent ? nullptr : &carrier,
              .to = frame.source,
              .for_group = IsForGroup(qp, frame),
              .syndrome = syndrome,
              .attempt = frame.attempt,
              .message = frame.message,
              .ticket = record.serial != 0 ? record.ticket : qp.tickets_done,
              .serial = record.serial,
              .has_receive = record.has_receive};
  if (reply.has_receive) reply.ring_slot = receives_.CompletionSlot(qp, record.message.receive);
  replies_.push_back(reply);
}

void EndpointTarget::RefuseForNow(QpContext& qp, flow::Carrier& carrier,
                                  const ChannelFrame& frame) {
  if (!WantsReply(frame)) return;
  qp.worker->counters.rnr_tx_packets.Add();
  Answer(qp, carrier, frame, wire::kSyndromeRnr | kRefusalTimer, {});
  ++replies_.back().attempt;
}

// Rebuilds a reply: its FrameRef holds all its fields.
ChannelFrame EndpointTarget::ReplyOf(const flow::FrameRef& frame, Qpn number, Qpn group) {
  return {.kind = FrameKind::kReply,
          .flags = wire::kFrameRelaxed,
          .destination = Qpn{frame.offset & 0xFFFFFF},
          .source = frame.length != 0 ? group : number,
          .syndrome = static_cast<uint8_t>(frame.offset >> 24),
          .attempt = frame.extra,
          .message = frame.message};
}

PumpResult EndpointTarget::Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget) {
  const PumpResult answers = answers_.Pump(qp, outbox, now, budget);
  for (const EndpointAnswers::Failed& failed : answers_.TakeFailed()) {
    qp.worker->counters.nak_error_tx_packets.Add();
    replies_.push_back({.carrier = failed.carrier,
                        .to = failed.to,
                        .for_group = failed.as != qp.config.qpn,
                        .syndrome = SyndromeOf(NakCode::kRemoteAccess),
                        .message = failed.message,
                        .ticket = qp.tickets_done});
  }
  return Busier(answers, PumpReplies(qp, outbox, now, budget));
}

bool EndpointTarget::MayReply(QpContext& qp, flow::Carrier& carrier, TimePoint now,
                              const PumpBudget& budget) {
  return budget.last ? carrier.MaySendLast(now) : channels_.MaySend(qp, carrier, 0, now);
}

bool EndpointTarget::SendReply(QpContext& qp, Outbox& outbox, const Reply& reply, TimePoint now) {
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

PumpResult EndpointTarget::PumpReplies(QpContext& qp, Outbox& outbox, TimePoint now,
                                       PumpBudget& budget) {
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
      if (!MayReply(qp, *reply.carrier, now, budget)) {
        // Replies to other gateways need not wait for this channel.
        Block(reply);
      } else if (SendReply(qp, outbox, reply, now)) {
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
bool EndpointTarget::PumpBlocked(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget) {
  for (size_t i = 0; i < blocked_.size();) {
    Blocked& one = blocked_[i];
    while (!one.replies.empty()) {
      if (!budget.left()) {
        // The other channels come first next time.
        std::swap(one, blocked_.back());
        return false;
      }
      if (!MayReply(qp, *one.carrier, now, budget)) break;
      if (!SendReply(qp, outbox, one.replies.front(), now)) return false;
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

void EndpointTarget::Block(const Reply& reply) {
  auto of = std::find_if(blocked_.begin(), blocked_.end(),
                         [&](const Blocked& one) { return one.carrier == reply.carrier; });
  if (of == blocked_.end()) of = blocked_.insert(of, Blocked{.carrier = reply.carrier});
  of->replies.push_back(reply);
}

bool EndpointTarget::MayAnswer(const flow::Carrier& carrier) const {
  if (replies_.size() >= kMostReplies) return false;
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

void EndpointTarget::UnblockAll() {
  for (Blocked& one : blocked_)
    for (; !one.replies.empty(); one.replies.pop_front()) replies_.push_back(one.replies.front());
  blocked_.clear();
}

void EndpointTarget::DropSilentReplies() {
  for (size_t left = replies_.size(); left != 0; --left) {
    const Reply reply = replies_.front();
    replies_.pop_front();
    if (reply.carrier != nullptr) replies_.push_back(reply);
  }
}

flow::Resend EndpointTarget::Again(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                                   const flow::FrameRef& frame, Psn psn) {
  if (FrameKindOf(frame) != FrameKind::kReply)
    return answers_.Again(qp, outbox, carrier, frame, psn);
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return flow::Resend::kPortFull;
  ChannelFrame reply = ReplyOf(frame, qp.config.qpn, qp.rare.group);
  BuildFrame(qp, carrier.address(), reply, psn, 0, *packet);
  outbox.Send(qp, packet);
  qp.worker->counters.retransmit_packets.Add();
  ++qp.retransmits;
  return flow::Resend::kDone;
}

void EndpointTarget::OnMemoryFault(QpContext& qp, const AccessTag& tag) {
  qp.worker->counters.memory_fault_operations.Add();
  if (tag.purpose == AccessPurpose::kReadResponse || tag.purpose == AccessPurpose::kAtomic)
    return answers_.OnMemoryFault(tag);
  const bool receive = tag.purpose == AccessPurpose::kReceive;
  const uint8_t nak = SyndromeOf(receive ? NakCode::kRemoteOperation : NakCode::kRemoteAccess);
  for (auto& [key, record] : in_flight_) {
    if (record.serial != tag.request) continue;
    record.message.nak = nak;
    if (receive) record.message.receive_status = WcStatus::kLocalProtection;
    return;
  }
  for (size_t i = 0; i < replies_.size(); ++i) {
    Reply& reply = replies_[i];
    if (reply.serial != tag.request || reply.syndrome != wire::kSyndromeAck) continue;
    reply.syndrome = nak;
    if (reply.has_receive) receives_.FailOne(reply.ring_slot, WcStatus::kLocalProtection);
  }
}

void EndpointTarget::OnCarrierLost(QpContext& qp, const flow::Carrier& carrier) {
  answers_.OnCarrierLost(carrier);
  for (auto at = in_flight_.begin(); at != in_flight_.end();) {
    const bool gone = at->first.carrier == &carrier;
    if (gone) GiveBack(qp, at->second);
    at = gone ? Erase(at) : std::next(at);
  }
  for (size_t left = replies_.size(); left != 0; --left) {
    const Reply reply = replies_.front();
    replies_.pop_front();
    if (reply.carrier != &carrier) replies_.push_back(reply);
  }
  std::erase_if(blocked_, [&](const Blocked& one) { return one.carrier == &carrier; });
}

}  // namespace rocegw::transport
