// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/endpoint/endpoint_answers.h"

#include <algorithm>
#include <utility>

#include "gateway/transport/message/frame_packet.h"
#include "gateway/transport/message/remote_read.h"

namespace rocegw::transport {

using wire::ChannelFrame;
using wire::FrameKind;
using wire::NakCode;

void EndpointAnswers::Reset() {
  answers_.clear();
  waiting_.clear();
  sent_.clear();
  waiting_of_.clear();
  waiting_at_.clear();
  failed_.clear();
  look_at_ = kNever;
}

bool EndpointAnswers::HasRoomFor(const flow::Carrier& carrier, Qpn source) const {
  if (waiting_.size() >= kMost) return false;
  if (waiting_.size() >= kMost / 2 &&
      waiting_at_.Of(carrier.peer()) >= kMost / 2 / (waiting_at_.size() + 1)) {
    return false;
  }
  const auto found = waiting_of_.find(SenderOf(carrier, source));
  return found == waiting_of_.end() || found->second < kMostOfOne;
}

std::optional<NakCode> EndpointAnswers::Take(QpContext& qp, Outbox& outbox, flow::Carrier& carrier,
                                             const ChannelFrame& frame, uint32_t serial, Qpn as) {
  IncomingMessage message;
  message.Begin(frame);
  const bool atomic = frame.kind != FrameKind::kReadRequest;
  verbs::RemotePlace place;
  const std::optional<NakCode> refused =
      atomic ? CheckAtomic(qp, message, place) : CheckRead(qp, message);
  if (refused.has_value()) return refused;
  Answer answer{.executed = {.atomic = atomic,
                             .message = frame.message,
                             .address = frame.address,
                             .rkey = frame.rkey,
                             .length = frame.length},
                .carrier = &carrier,
                .to = frame.source,
                .as = as};
  if (atomic) answer.executed.ticket = ExecuteAtomic(qp, outbox, message, place, serial);
  channels_.Use(carrier);
  answers_.emplace(serial, answer);
  waiting_.push_back(serial);
  BeginWait(answer);
  return std::nullopt;
}

PumpResult EndpointAnswers::Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget) {
  // In the error state, no memory is read for peers any more.
  if (qp.state() == verbs::QpState::kError) {
    ForgetAll();
    return PumpResult::kIdle;
  }
  while (!sent_.empty()) {
    const auto at = answers_.find(sent_.front());
    if (at != answers_.end() && !at->second.carrier->HasArrived(at->second.last)) break;
    sent_.pop_front();
    if (at != answers_.end()) Forget(at);
  }
  for (size_t stuck = 0; stuck < waiting_.size();) {
    if (!budget.left()) return PumpResult::kMore;
    const uint32_t serial = waiting_.front();
    waiting_.pop_front();
    const auto at = answers_.find(serial);
    if (at == answers_.end()) continue;
    const Sent sent = SendPart(qp, outbox, serial, at->second, now, budget);
    if (sent == Sent::kAll) {
      EndWait(at->second);
      sent_.push_back(serial);
      look_at_ = Earlier(look_at_, now + kLook);
    } else if (sent == Sent::kFailed) {
      Fail(at);
    } else {
      waiting_.push_back(serial);
    }
    if (sent == Sent::kPortFull) return PumpResult::kMore;
    stuck = sent == Sent::kNothing ? stuck + 1 : 0;
  }
  return waiting_.empty() ? PumpResult::kIdle : PumpResult::kBlocked;
}

EndpointAnswers::Sent EndpointAnswers::SendPart(QpContext& qp, Outbox& outbox, uint32_t serial,
                                                Answer& answer, TimePoint now, PumpBudget& budget) {
  ExecutedMessage& executed = answer.executed;
  if (executed.atomic && !executed.known) return Sent::kNothing;
  flow::Carrier& carrier = *answer.carrier;
  const uint32_t most = std::min(verbs::MtuBytes(qp.rare.port_mtu), carrier.max_payload());
  for (uint32_t sent = 0; sent < kQuantum && budget.left();) {
    const uint32_t offset = executed.sent;
    const uint32_t bytes = NextBytes(executed, most);
    if (!channels_.MaySend(qp, carrier, bytes, now))
      return sent == 0 ? Sent::kNothing : Sent::kPart;
    port::TxPacket* packet = outbox.NewFrame(qp, carrier, bytes);
    if (packet == nullptr) return Sent::kPortFull;
    flow::FrameRef ref = MakeFrameRef(qp, AnswerKindOf(executed), serial, 0);
    ref.offset = offset;
    ref.length = static_cast<uint16_t>(bytes);
    answer.last = channels_.OnSent(qp, carrier, ref, bytes, now);
    const bool filled =
        Fill(qp, outbox, serial, answer, offset, bytes, answer.last, carrier.address(), *packet);
    // The PSN is used already. An empty frame keeps it; retransmission sends a void frame.
    if (!filled) packet->length = 0;
    outbox.SendFrame(qp, carrier, packet);
    if (!filled) return Sent::kFailed;
    executed.sent += bytes;
    sent += bytes;
    if (!executed.atomic) qp.worker->counters.read_response_tx_packets.Add();
    qp.CountBytesSent(bytes);
    budget.Take(bytes);
    executed.answered = executed.atomic || executed.sent == executed.length;
    if (executed.answered) return Sent::kAll;
  }
  return Sent::kPart;
}

bool EndpointAnswers::Fill(QpContext& qp, Outbox& outbox, uint32_t serial, const Answer& answer,
                           uint32_t offset, uint32_t bytes, Psn psn,
                           const flow::CarrierAddress& address, port::TxPacket& packet) const {
  return FillAnswer(qp, outbox, answer.executed,
                    {.offset = offset,
                     .bytes = bytes,
                     .psn = psn,
                     .request = serial,
                     .destination = answer.to,
                     .source = answer.as},
                    address, packet);
}

flow::Resend EndpointAnswers::Again(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                                    const flow::FrameRef& frame, Psn psn) {
  const auto at = answers_.find(frame.message);
  if (at == answers_.end() || at->second.carrier != &carrier) return flow::Resend::kVoid;
  port::TxPacket* packet = outbox.NewPacket(qp);
  if (packet == nullptr) return flow::Resend::kPortFull;
  const bool filled = Fill(qp, outbox, frame.message, at->second, frame.offset, frame.length, psn,
                           carrier.address(), *packet);
  if (!filled) packet->length = 0;
  outbox.Send(qp, packet);
  if (!filled) {
    Fail(at);
    return flow::Resend::kVoid;
  }
  qp.worker->counters.retransmit_packets.Add();
  ++qp.retransmits;
  return flow::Resend::kDone;
}

void EndpointAnswers::OnAtomicResult(const AccessTag& tag, uint64_t original) {
  const auto at = answers_.find(tag.request);
  if (at == answers_.end() || at->second.executed.ticket != tag.ticket) return;
  at->second.executed.result = original;
  at->second.executed.known = true;
}

void EndpointAnswers::OnMemoryFault(const AccessTag& tag) {
  if (const auto at = answers_.find(tag.request); at != answers_.end()) Fail(at);
}

void EndpointAnswers::Leave(EndpointTombstone& tombstone) const {
  for (const auto& [serial, answer] : answers_) {
    const ExecutedMessage& executed = answer.executed;
    if (!executed.atomic || !executed.answered) continue;
    tombstone.Keep(serial, {answer.to, answer.as, executed.message, executed.result});
  }
}

void EndpointAnswers::BeginWait(const Answer& answer) {
  ++waiting_of_[SenderOf(*answer.carrier, answer.to)];
  waiting_at_.Add(answer.carrier->peer());
}

void EndpointAnswers::EndWait(const Answer& answer) {
  const auto of = waiting_of_.find(SenderOf(*answer.carrier, answer.to));
  if (of != waiting_of_.end() && --of->second == 0) waiting_of_.erase(of);
  waiting_at_.Remove(answer.carrier->peer());
}

void EndpointAnswers::Fail(Answers::iterator at) {
  const Answer& answer = at->second;
  if (!answer.executed.answered) EndWait(answer);
  failed_.push_back({answer.carrier, answer.to, answer.as, answer.executed.message});
  answers_.erase(at);
}

void EndpointAnswers::Forget(Answers::iterator at) {
  channels_.Leave(*at->second.carrier);
  answers_.erase(at);
}

void EndpointAnswers::OnCarrierLost(const flow::Carrier& carrier) {
  for (auto at = answers_.begin(); at != answers_.end();) {
    const Answer& answer = at->second;
    const bool gone = answer.carrier == &carrier;
    if (gone && !answer.executed.answered) EndWait(answer);
    at = gone ? answers_.erase(at) : std::next(at);
  }
  std::erase_if(failed_, [&](const Failed& one) { return one.carrier == &carrier; });
}

void EndpointAnswers::ForgetAll() {
  for (const auto& [serial, answer] : answers_) channels_.Leave(*answer.carrier);
  for (const Failed& one : failed_) channels_.Leave(*one.carrier);
  Reset();
}

// Frees responses that have arrived. The list is not in order of arrival, because different peers
// acknowledge independently.
void EndpointAnswers::ForgetArrived() {
  for (size_t left = sent_.size(); left != 0; --left) {
    const uint32_t serial = sent_.front();
    sent_.pop_front();
    const auto at = answers_.find(serial);
    if (at == answers_.end()) continue;
    if (at->second.carrier->HasArrived(at->second.last)) {
      Forget(at);
    } else {
      sent_.push_back(serial);
    }
  }
}

void EndpointAnswers::OnDeadline(TimePoint now) {
  if (now < look_at_) return;
  ForgetArrived();
  look_at_ = sent_.empty() ? kNever : now + kLook;
}

}  // namespace rocegw::transport
