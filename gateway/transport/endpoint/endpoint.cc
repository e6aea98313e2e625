// SPDX-License-Identifier: Apache-2.0
// An endpoint: a queue pair without a connection. Its requests name their destination, and it
// accepts messages from every sender that knows its key, both only by channels. A failed message
// does not affect others or the endpoint. Its state grows with the messages in flight, not with the
// number of peers it has talked to.
#include <cerrno>

#include "gateway/transport/endpoint/endpoint_initiator.h"
#include "gateway/transport/endpoint/endpoint_queue_pair.h"
#include "gateway/transport/endpoint/endpoint_target.h"
#include "gateway/transport/message/frame_packet.h"

namespace rocegw::transport {
namespace {

class Endpoint final : public EndpointQueuePair {
 public:
  explicit Endpoint(const verbs::QpConfig& config) : EndpointQueuePair(config) {
    send_.SetSize(config.sq_entries, config.max_send_sge);
    initiator_.SetSize(config.sq_entries);
  }

  metrics::DropReason OnFrame(Outbox& outbox, flow::Carrier& carrier,
                              const wire::ChannelFrame& frame, std::span<const uint8_t> payload,
                              bool refuse, TimePoint now) override {
    metrics::DropReason reason = metrics::DropReason::k_invalid_request;
    switch (frame.kind) {
      case wire::FrameKind::kSend:
      case wire::FrameKind::kWrite:
      case wire::FrameKind::kReadRequest:
      case wire::FrameKind::kCompareSwap:
      case wire::FrameKind::kFetchAdd:
      case wire::FrameKind::kFetchOperate:
        reason = target_.OnFrame(qp_, outbox, carrier, frame, payload, refuse);
        break;
      case wire::FrameKind::kReply:
        reason = initiator_.OnReply(qp_, outbox, carrier, frame, now);
        break;
      case wire::FrameKind::kReadResponse:
      case wire::FrameKind::kAtomicResult:
        reason = initiator_.OnAnswer(qp_, outbox, carrier, frame, payload, now);
        break;
      case wire::FrameKind::kFlush:
      case wire::FrameKind::kAtomicWrite:
      case wire::FrameKind::kVoid:
      case wire::FrameKind::kCount:
        break;
    }
    if (!flushed()) FlushOnError(outbox);
    return reason;
  }
  flow::Resend Again(Outbox& outbox, const flow::Carrier& carrier, const flow::FrameRef& frame,
                     Psn psn) override {
    if (!SameConnection(qp_, frame)) return flow::Resend::kVoid;
    return IsAnswer(FrameKindOf(frame)) ? target_.Again(qp_, outbox, carrier, frame, psn)
                                        : initiator_.Again(qp_, outbox, carrier, frame, psn);
  }
  bool Wants(const flow::Carrier& carrier, const flow::FrameRef& frame) const override {
    return SameConnection(qp_, frame) && initiator_.Wants(qp_, carrier, frame);
  }
  bool OnArrived(const flow::Carrier& carrier, const flow::FrameRef& frame) override {
    // The length of a reply's FrameRef is not a payload length (EndpointReplies::ReplyOf).
    if (!qp_.bounded || !SameConnection(qp_, frame) ||
        FrameKindOf(frame) == wire::FrameKind::kReply)
      return false;
    return channels_.OnArrived(carrier, frame.length);
  }
  void OnTurn(const flow::Carrier& carrier) override { channels_.OnTurn(carrier); }
  bool Uses(const flow::Carrier&) const override { return true; }
  void OnCarrierLost(Outbox& outbox, const flow::Carrier& carrier, bool, wire::ChannelReason,
                     TimePoint) override {
    initiator_.OnCarrierLost(qp_, outbox, carrier);
    target_.OnCarrierLost(qp_, carrier);
    channels_.Drop(carrier);
    if (!flushed()) FlushOnError(outbox);
  }
  int Move(Outbox& outbox, EndpointState to, bool notify, TimePoint now) override;
  EndpointStatus status() const override {
    return {state(), initiator_.under_way(qp_), target_.under_way(), initiator_.failures()};
  }
  bool takes_messages() const override { return qp_.receives() && !target_.drains(); }
  uint32_t receives_left() const override { return target_.receives_left(qp_); }
  size_t records_bytes() const override { return target_.records_bytes(); }
  std::optional<uint8_t> Begun(const MessageName& message) const override {
    return target_.Begun(message);
  }
  std::unique_ptr<EndpointTombstone> MakeTombstone() const override {
    auto tombstone = std::make_unique<EndpointTombstone>(qp_.handle, qp_.connection, qp_.config.qpn,
                                                         qp_.rare.group, qp_.config.tenant_tag);
    target_.Leave(*tombstone);
    return tombstone;
  }
  void ListBegun(std::vector<MessageName>& begun) const override { target_.ListBegun(begun); }
  void OnAtomicResult(const AccessTag& tag, uint64_t original) override {
    target_.OnAtomicResult(tag, original);
  }
  void GiveBackReceives() override { (void)receives_.Reset(qp_); }
  TimePoint deadline() const override {
    return qp_.sends() ? Earlier(initiator_.deadline(), target_.deadline()) : target_.deadline();
  }
  Psns psns() const override { return {Psn(send_.tail()), Psn(send_.head()), Psn()}; }
  uint32_t outstanding() const override { return send_.size(); }

 protected:
  bool DoReset() override {
    const bool sends = send_.Reset(qp_);
    const bool receives = receives_.Reset(qp_);
    initiator_.Reset();
    target_.Reset();
    channels_.Clear();
    ++qp_.connection;
    return sends && receives;
  }
  bool Drained() const override { return initiator_.under_way(qp_) == 0; }
  void DoAttributes(uint32_t mask) override {
    if ((mask & verbs::kAttrState) == 0) return;
    initiator_.EndException();
    target_.SetReport(false);
  }
  void DoFlush(Outbox& outbox) override {
    send_.Flush(qp_, outbox);
    target_.Flush();
    receives_.Flush(qp_, outbox, qp_.tickets_issued);
  }
  PumpResult PumpAnswers(Outbox& outbox, TimePoint now, PumpBudget& budget) override {
    return target_.PumpReplies(qp_, outbox, now, budget);
  }
  PumpResult DoPump(Outbox& outbox, TimePoint now, PumpBudget& budget) override {
    const bool requests_first = qp_.requests_first;
    const uint32_t all = budget.packets;
    PumpResult requests = PumpResult::kIdle;
    if (requests_first) requests = initiator_.Pump(qp_, outbox, now, budget);
    const uint32_t before = budget.packets;
    const PumpResult replies = target_.Pump(qp_, outbox, now, budget);
    const uint32_t replied = before - budget.packets;
    if (!requests_first) requests = initiator_.Pump(qp_, outbox, now, budget);
    // Answers and requests must not starve each other.
    qp_.requests_first =
        RequestsFirst(requests_first, replied != 0, all - budget.packets != replied);
    ReportChanges(outbox);
    return Busier(replies, requests);
  }
  metrics::DropReason DoPacket(Outbox&, const wire::RxPacket&, TimePoint) override {
    return metrics::DropReason::k_wrong_service;
  }
  void DoMemoryDone(Outbox& outbox) override {
    receives_.OnMemoryDone(qp_, outbox);
    target_.OnMemoryDone(qp_);
    // In the error state, the remaining requests also wait for their memory operations.
    if (qp_.state() == verbs::QpState::kError) send_.OnMemoryDone(qp_, outbox);
    // A READ completes when its last bytes are placed.
    if (qp_.sends()) send_.RetireEach(qp_, outbox);
  }
  void DoMemoryFault(Outbox& outbox, const AccessTag& tag) override {
    switch (tag.purpose) {
      case AccessPurpose::kSendPayload:
      case AccessPurpose::kReadPlacement:
      case AccessPurpose::kAtomicPlacement:
        return initiator_.OnMemoryFault(qp_, outbox, tag);
      case AccessPurpose::kReceive:
      case AccessPurpose::kWrite:
      case AccessPurpose::kReadResponse:
      case AccessPurpose::kAtomic:
        return target_.OnMemoryFault(qp_, tag);
    }
  }
  void DoDeadline(Outbox& outbox, TimePoint now) override {
    initiator_.OnDeadline(qp_, outbox, now);
    target_.OnDeadline(qp_, now);
    // Without a program that waits for the end, peers have the time that they need.
    if (!target_.DrainIsOver(now) || !target_.reports()) return;
    if (target_.under_way() != 0) qp_.worker->counters.timeout_events.Add();
    target_.EndDrain(qp_);
    // The program also waits for its own requests.
    if (qp_.sends()) initiator_.GiveUp(qp_, outbox);
  }
  void DoHandOver(hand_over::StateStream& state, flow::CarrierNames& names) override {
    channels_.HandOver(state, names);
    receives_.HandOver(state, qp_);
    send_.HandOver(state, qp_);
    initiator_.HandOver(state, names);
    target_.HandOver(state, names);
  }

 private:
  EndpointState state() const;
  // Raises the events that are due. Every event of the endpoint is followed by a Pump.
  void ReportChanges(Outbox& outbox);

  SendQueue send_;
  ReceiveQueue receives_{ReceiveOrder::kAsTheyCome};
  PeerChannels channels_;
  EndpointInitiator initiator_{send_, channels_};
  EndpointTarget target_{receives_, channels_};
};

EndpointState Endpoint::state() const {
  switch (qp_.state()) {
    case verbs::QpState::kRts:
      return target_.drains() ? EndpointState::kDraining : EndpointState::kReady;
    case verbs::QpState::kSqd:
      return initiator_.in_exception() ? EndpointState::kException : EndpointState::kSuspended;
    case verbs::QpState::kError:
      return EndpointState::kError;
    default:
      return EndpointState::kReset;
  }
}

int Endpoint::Move(Outbox& outbox, EndpointState to, bool notify, TimePoint now) {
  if (!qp_.sends()) return EINVAL;
  // An exception that is due is told before it ends.
  ReportChanges(outbox);
  verbs::QpAttributes wanted;
  const auto modify = [&](verbs::QpState next, uint32_t mask) {
    wanted.state = next;
    return Modify(outbox, verbs::kAttrState | mask, wanted, now);
  };
  if (to == EndpointState::kError) return modify(verbs::QpState::kError, 0);
  const bool suspends = to == EndpointState::kSuspended;
  const bool drains = to == EndpointState::kDraining;
  if (!suspends && !drains && to != EndpointState::kReady) return EINVAL;
  // To RTS first, so that the event of an earlier change is cancelled.
  if (const int error = modify(verbs::QpState::kRts, 0); error != 0) return error;
  target_.SetDrains(drains, now);
  target_.SetReport(drains && notify);
  if (!suspends) return 0;
  wanted.sqd_notify = notify;
  return modify(verbs::QpState::kSqd, notify ? uint32_t{verbs::kAttrEnSqdAsyncNotify} : 0);
}

void Endpoint::ReportChanges(Outbox& outbox) {
  if (initiator_.TakeException()) {
    PublishState();
    outbox.Event(qp_, verbs::AsyncEvent::kQpRequestError);
    // Tells the program when the requests under way have ended.
    qp_.report_drained = true;
  }
  const bool reports = target_.reports() && state() == EndpointState::kDraining;
  if (!reports || target_.under_way() != 0 || !send_.empty() || qp_.sq().Posted() != 0) return;
  target_.SetReport(false);
  outbox.Event(qp_, verbs::AsyncEvent::kSqDrained);
}

}  // namespace

std::unique_ptr<EndpointQueuePair> MakeEndpoint(const verbs::QpConfig& config) {
  return std::make_unique<Endpoint>(config);
}

}  // namespace rocegw::transport
