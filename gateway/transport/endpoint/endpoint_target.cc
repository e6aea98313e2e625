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
  replies_.Reset();
  answers_.Reset();
  idle_at_ = drained_by_ = kNever;
  drains_ = reports_ = false;
}

uint32_t EndpointTarget::under_way() const {
  return static_cast<uint32_t>(in_flight_.size() + answers_.size() + replies_.begun());
}

size_t EndpointTarget::records_bytes() const {
  return in_flight_.size() * kHeapOfRecord + replies_.heap_bytes() + answers_.heap_bytes();
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
  replies_.Silence(qp);
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
    if (replies_.HasRoomFor(*key.carrier)) {
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
  if (WantsReply(frame) && !replies_.HasRoomFor(carrier)) return DropReason::k_replies_full;
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
  EndpointReplies::Reply reply{.carrier = silent ? nullptr : &carrier,
                               .to = frame.source,
                               .for_group = IsForGroup(qp, frame),
                               .syndrome = syndrome,
                               .attempt = frame.attempt,
                               .message = frame.message,
                               .ticket = record.serial != 0 ? record.ticket : qp.tickets_done,
                               .serial = record.serial,
                               .has_receive = record.has_receive};
  if (reply.has_receive) reply.ring_slot = receives_.CompletionSlot(qp, record.message.receive);
  replies_.Add(reply);
}

void EndpointTarget::RefuseForNow(QpContext& qp, flow::Carrier& carrier,
                                  const ChannelFrame& frame) {
  if (!WantsReply(frame)) return;
  qp.worker->counters.rnr_tx_packets.Add();
  ChannelFrame refused = frame;
  ++refused.attempt;
  Answer(qp, carrier, refused, wire::kSyndromeRnr | kRefusalTimer, {});
}

PumpResult EndpointTarget::Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget) {
  const PumpResult answers = answers_.Pump(qp, outbox, now, budget);
  for (const EndpointAnswers::Failed& failed : answers_.TakeFailed()) {
    qp.worker->counters.nak_error_tx_packets.Add();
    replies_.Add({.carrier = failed.carrier,
                  .to = failed.to,
                  .for_group = failed.as != qp.config.qpn,
                  .syndrome = SyndromeOf(NakCode::kRemoteAccess),
                  .message = failed.message,
                  .ticket = qp.tickets_done});
  }
  return Busier(answers, replies_.Pump(qp, outbox, now, budget));
}

flow::Resend EndpointTarget::Again(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                                   const flow::FrameRef& frame, Psn psn) {
  if (FrameKindOf(frame) != FrameKind::kReply)
    return answers_.Again(qp, outbox, carrier, frame, psn);
  return replies_.Again(qp, outbox, carrier, frame, psn);
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
  replies_.OnMemoryFault(tag.request, [&](EndpointReplies::Reply& reply) {
    reply.syndrome = nak;
    if (reply.has_receive) receives_.FailOne(reply.ring_slot, WcStatus::kLocalProtection);
  });
}

void EndpointTarget::OnCarrierLost(QpContext& qp, const flow::Carrier& carrier) {
  answers_.OnCarrierLost(carrier);
  for (auto at = in_flight_.begin(); at != in_flight_.end();) {
    const bool gone = at->first.carrier == &carrier;
    if (gone) GiveBack(qp, at->second);
    at = gone ? Erase(at) : std::next(at);
  }
  replies_.OnCarrierLost(carrier);
}

}  // namespace rocegw::transport
