// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "gateway/flow/carrier_names.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/transport/message/frame_packet.h"
#include "gateway/transport/message/message_requester.h"
#include "gateway/transport/message/message_responder.h"
#include "gateway/transport/native/cnp_sender.h"
#include "gateway/transport/native/requester.h"
#include "gateway/transport/native/responder.h"
#include "gateway/transport/queue_pair.h"

namespace rocegw::transport {
namespace {

// Attributes that a running requester takes over from modify_qp.
constexpr uint32_t kRequesterLimits =
    verbs::kAttrTimeout | verbs::kAttrRetryCnt | verbs::kAttrRnrRetry;

class RcQueuePair final : public QueuePair {
 public:
  RcQueuePair(const verbs::QpConfig& config, const flow::CcConfig& cc)
      : QueuePair(config), cc_(cc) {
    send_.SetSize(config.sq_entries, config.max_send_sge);
  }
  explicit RcQueuePair(const verbs::QpShape& shape) {
    send_.Reserve(shape.sq_entries, shape.max_sge);
    responder_.Reserve(shape.rd_atomic);
  }

  ~RcQueuePair() override {
    message_responder_.Reset();
    ReleaseCarrier();
  }

  void Prefetch(NextEvent next) const override {
    const bool sends = next == NextEvent::kTurn || next == NextEvent::kAnswer;
    base::Prefetch(this);
    base::Prefetch(&qp_.connection);
    base::Prefetch(&qp_.attributes.path.destination);
    if (next != NextEvent::kRequest) {
      base::Prefetch(&qp_.send_ring);
      base::Prefetch(&send_);
    }
    if (qp_.carrier != nullptr) {
      base::Prefetch(&message_requester_);
      base::Prefetch(&send_);
    } else if (sends) {
      base::PrefetchLines(&requester_, kOfRequester);
    } else {
      base::Prefetch(&responder_);
    }
  }
  void PrefetchLinks(NextEvent next) const override {
    if (qp_.control == nullptr) return;
    switch (next) {
      case NextEvent::kTurn:
        base::Prefetch(&qp_.control->sq_producer);
        if (qp_.send_ring.entries != 0) base::Prefetch(qp_.NextSend());
        send_.PrefetchNext();
        break;
      case NextEvent::kSend:
        base::Prefetch(qp_.recv_cq);
        if (qp_.receive_ring.entries != 0) {
          base::Prefetch(&qp_.control->rq_producer);
          base::Prefetch(qp_.status);
          base::Prefetch(qp_.NextReceive());
        }
        [[fallthrough]];
      case NextEvent::kRequest:
        if (qp_.hears_native) responder_.Prefetch();
        break;
      case NextEvent::kAnswer:
        base::Prefetch(qp_.status);
        base::Prefetch(qp_.send_cq);
        send_.PrefetchOldest();
        break;
    }
  }
  void PrefetchFar(NextEvent next) const override {
    if (qp_.control == nullptr) return;
    if (next == NextEvent::kAnswer) qp_.send_cq->Prefetch();
    if (next == NextEvent::kSend) qp_.recv_cq->Prefetch();
  }

  void BindCarrier(flow::Carrier& carrier) override {
    qp_.EndRest();
    ReleaseCarrier();
    qp_.carrier = &carrier;
    carrier.Hold();
  }

  void Adopt(const verbs::QpConfig& config, const flow::CcConfig& cc) override {
    Bind(config);
    send_.SetSize(config.sq_entries, config.max_send_sge);
    cc_ = cc;
  }

  void OnAtomicResult(const AccessTag& tag, uint64_t original) override {
    if (tag.on_channel) {
      message_responder_.OnAtomicResult(tag, original);
    } else {
      responder_.OnAtomicResult(tag, original);
    }
  }
  TimePoint deadline() const override {
    const TimePoint answers = qp_.hears_native ? responder_.deadline() : kNever;
    if (qp_.requests_rest) return answers;
    if (qp_.requests_on_channel()) return Earlier(answers, message_requester_.deadline(qp_, send_));
    return Earlier(answers, qp_.sends() ? requester_.deadline() : kNever);
  }
  Psns psns() const override {
    if (qp_.requests_on_channel()) {
      return {Psn(message_requester_.next_message()), Psn(message_requester_.oldest_message(send_)),
              Psn(message_responder_.expected())};
    }
    return {requester_.flow().next(), requester_.flow().una(), responder_.expected()};
  }
  uint32_t outstanding() const override { return send_.size(); }
  size_t channel_bytes() const override {
    return sizeof message_requester_ + sizeof message_responder_ + message_responder_.idle_bytes() +
           sizeof qp_.wait_entry + 2 * sizeof(void*);  // carrier and multipath
  }
  size_t records_bytes() const override { return message_responder_.records_bytes(); }

  void GiveBackReceives() override { (void)receives_.Reset(qp_); }
  const flow::RttEstimator* rtt() const override { return &requester_.flow().rtt(); }
  void SwitchCc(const flow::CcConfig& cc, TimePoint now) override {
    qp_.EndRest();
    cc_ = cc;
    if (!qp_.receives()) return;
    requester_.SwitchCc(qp_, cc, now);
    qp_.ecn = ProfileOf(cc_).ecn && requester_.flow().uses_marks();
  }

  metrics::DropReason OnFrame(Outbox& outbox, flow::Carrier& carrier,
                              const wire::ChannelFrame& frame, std::span<const uint8_t> payload,
                              bool refuse, TimePoint now) override {
    metrics::DropReason reason = metrics::DropReason::k_invalid_request;
    if (IsAnswer(frame.kind)) qp_.EndRest();
    switch (frame.kind) {
      case wire::FrameKind::kSend:
      case wire::FrameKind::kWrite:
      case wire::FrameKind::kReadRequest:
      case wire::FrameKind::kCompareSwap:
      case wire::FrameKind::kFetchAdd:
      case wire::FrameKind::kFetchOperate:
      case wire::FrameKind::kFlush:
      case wire::FrameKind::kAtomicWrite:
        qp_.hears_channel = true;
        reason = message_responder_.OnFrame(qp_, outbox, carrier, frame, payload, refuse);
        break;
      case wire::FrameKind::kReadResponse:
        reason = message_requester_.OnReadResponse(qp_, send_, outbox, frame, payload, now);
        break;
      case wire::FrameKind::kAtomicResult:
        reason = message_requester_.OnAtomicResult(qp_, send_, outbox, frame, now);
        break;
      case wire::FrameKind::kReply:
        reason = message_requester_.OnReply(qp_, send_, outbox, frame, now);
        break;
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
    qp_.EndRest();
    const bool answer = IsAnswer(FrameKindOf(frame));
    const flow::Resend result =
        answer ? message_responder_.Again(qp_, outbox, carrier, frame, psn)
               : message_requester_.Again(qp_, send_, outbox, carrier, frame, psn);
    if (!flushed()) FlushOnError(outbox);
    return result;
  }

  bool Wants(const flow::Carrier& carrier, const flow::FrameRef& frame) const override {
    return SameConnection(qp_, frame) && message_requester_.Wants(qp_, send_, carrier, frame);
  }
  void OnSentAgain(const flow::FrameRef& frame) override {
    if (IsAnswer(FrameKindOf(frame))) return CountSentAgain();
    message_requester_.CountResent(qp_);
  }

  void OnTurn(const flow::Carrier& carrier) override {
    qp_.EndRest();
    qp_.WaitEntryAt(carrier).waiting = false;
  }
  bool Uses(const flow::Carrier& carrier) const override {
    return qp_.carrier == &carrier || qp_.IsBeside(carrier) || message_responder_.LeavesBy(carrier);
  }
  void OnCarrierLost(Outbox& outbox, const flow::Carrier& carrier, bool opened,
                     wire::ChannelReason why, TimePoint now) override {
    qp_.EndRest();
    const bool mine = qp_.carrier == &carrier;
    const bool beside = qp_.IsBeside(carrier);
    if (beside) {
      qp_.multipath->Drop(carrier);
      // The path never opened, so nothing was sent on it.
      if (!opened) return;
    } else {
      qp_.wait_entry.waiting = false;
    }
    if (mine) ReleaseCarrier();
    // The channel led to an earlier run of the peer gateway. If nothing was answered on it, the
    // current run has received nothing either, and plain RoCEv2 can start afresh.
    const bool forgotten =
        (why == wire::ChannelReason::kUnknownChannel || why == wire::ChannelReason::kStaleEpoch) &&
        !message_requester_.heard();
    message_responder_.OnCarrierLost(carrier, beside);
    if (mine && (!opened || forgotten)) {
      qp_.declined = why;
      qp_.ForgetPeerOptions();
      qp_.multipath.reset();
      if (!qp_.requests_on_channel()) return;
      message_requester_.Reset();
      send_.TakeBackBegun();
      StartNative(now);
      return;
    }
    if (mine || beside) message_requester_.OnCarrierLost(qp_, send_);
    if (!flushed()) FlushOnError(outbox);
  }

 protected:
  bool DoReset() override {
    const bool sends = send_.Reset(qp_);
    const bool receives = receives_.Reset(qp_);
    requester_.Reset();
    responder_.Reset();
    message_requester_.Reset();
    message_responder_.Reset();
    qp_.request_path = RequestPath::kUndecided;
    ReleaseCarrier();
    qp_.ForgetPeerOptions();
    qp_.multipath.reset();
    qp_.wait_entry.waiting = false;
    qp_.declined = wire::ChannelReason::kNone;
    qp_.hears_native = qp_.hears_channel = false;
    ++qp_.connection;
    qp_.in_flight = qp_.unasked = 0;
    qp_.wants_room = qp_.asks_ack = false;
    return sends && receives;
  }
  void DoReadyToReceive(TimePoint now) override {
    responder_.Start(qp_);
    requester_.Open(qp_, cc_, now);
    cnps_.Start(now);
    qp_.ecn = ProfileOf(cc_).ecn && requester_.flow().uses_marks();
  }
  void DoReadyToSend(TimePoint now) override {
    if (qp_.carrier != nullptr) {
      message_requester_.Start(qp_, send_, now);
    } else {
      StartNative(now);
    }
  }
  void DoAttributes(uint32_t mask) override {
    if ((mask & kRequesterLimits) != 0) {
      message_requester_.Configure(qp_);
      requester_.Configure(qp_, cc_);
    }
    if ((mask & verbs::kAttrMaxDestRdAtomic) != 0) responder_.SetDepth(qp_);
  }
  bool Drained() const override { return send_.drained(); }

  void DoFlush(Outbox& outbox) override {
    requester_.Stop();
    send_.Flush(qp_, outbox);
    responder_.Stop();
    message_responder_.Stop();
    receives_.Flush(qp_, outbox, qp_.tickets_issued);
  }

  PumpResult PumpAnswers(Outbox& outbox, TimePoint now, PumpBudget& budget) override {
    PumpResult replies = PumpResult::kIdle;
    if (qp_.hears_native) replies = responder_.Pump(qp_, outbox, requester_.flow(), now, budget);
    if (!qp_.hears_channel || !message_responder_.active()) return replies;
    return Busier(replies, message_responder_.Pump(qp_, outbox, now, budget));
  }
  PumpResult DoPump(Outbox& outbox, TimePoint now, PumpBudget& budget) override {
    const bool requests_first = qp_.requests_first;
    const uint32_t all = budget.packets;
    PumpResult requests = PumpResult::kMore;
    if (requests_first) requests = PumpRequests(outbox, now, budget);
    const uint32_t before = budget.packets;
    const PumpResult replies = PumpAnswers(outbox, now, budget);
    const uint32_t replied = before - budget.packets;
    // If answers used up the whole budget, requests go first next time.
    qp_.requests_first = !budget.left() && !requests_first;
    if (!requests_first) requests = PumpRequests(outbox, now, budget);
    // The same for the window of their pool.
    if (qp_.wants_room) {
      qp_.requests_first =
          RequestsFirst(requests_first, replied != 0, all - budget.packets != replied);
    }
    return Busier(replies, requests);
  }

  metrics::DropReason DoPacket(Outbox& outbox, const wire::RxPacket& packet,
                               TimePoint now) override {
    const bool cnp = packet.traits->service == wire::Service::kCnp;
    const bool xrc = qp_.config.type == verbs::QpType::kXrcSend;
    const wire::Service service = xrc ? wire::Service::kXrc : wire::Service::kRc;
    // XRC_SEND queue pairs receive responses only.
    if (!cnp && (packet.traits->service != service || (xrc && packet.traits->is_request)))
      return metrics::DropReason::k_wrong_service;
    if (!qp_.receives()) return metrics::DropReason::k_qp_state;
    if (!qp_.IsFromPeer(packet.meta)) return metrics::DropReason::k_wrong_address;
    if (!packet.traits->is_request) qp_.EndRest();
    if (cnp) {
      qp_.worker->counters.cnp_rx_packets.Add();
      requester_.OnCnp(now);
      return metrics::DropReason::kNone;
    }
    cnps_.OnPacket(qp_, outbox, cc_, packet, now);
    if (!packet.traits->is_request) return requester_.OnResponse(qp_, outbox, packet, now);
    if (!qp_.hears_native) {
      qp_.hears_native = true;
      responder_.Begin(qp_);
    }
    return responder_.OnRequest(qp_, outbox, packet);
  }

  void DoMemoryDone(Outbox& outbox) override {
    if (qp_.hears_native) responder_.OnMemoryDone(qp_);
    if (qp_.hears_channel) message_responder_.OnMemoryDone(qp_);
    if (qp_.receiving || qp_.state() == verbs::QpState::kError) {
      receives_.OnMemoryDone(qp_, outbox);
      qp_.receiving = receives_.in_use();
    }
    if (!qp_.requests_rest) send_.OnMemoryDone(qp_, outbox);
  }

  void DoMemoryFault(Outbox& outbox, const AccessTag& tag) override {
    switch (tag.purpose) {
      case AccessPurpose::kSendPayload:
      case AccessPurpose::kReadPlacement:
      case AccessPurpose::kAtomicPlacement:
        if (qp_.requests_on_channel()) {
          message_requester_.OnMemoryFault(qp_, send_, outbox, tag);
        } else {
          requester_.OnMemoryFault(qp_, outbox, tag);
        }
        return;
      default:
        if (tag.on_channel) {
          message_responder_.OnMemoryFault(qp_, outbox, tag);
        } else {
          responder_.OnMemoryFault(qp_, outbox, tag);
        }
    }
  }

  void DoDeadline(Outbox& outbox, TimePoint now) override {
    responder_.OnDeadline(now);
    if (qp_.requests_on_channel()) {
      message_requester_.OnDeadline(qp_, send_, now);
    } else {
      requester_.OnDeadline(qp_, outbox, now);
    }
  }

  void DoHandOver(hand_over::StateStream& state, flow::CarrierNames& names) override {
    flow::HandOver(state, names, qp_.carrier);
    if (state.reading() && qp_.carrier != nullptr) qp_.carrier->Hold();
    const bool paths = state.Carry(qp_.multipath != nullptr);
    if (paths && qp_.multipath == nullptr) qp_.multipath = std::make_unique<Multipath>();
    if (paths) qp_.multipath->HandOver(state, names);
    receives_.HandOver(state, qp_);
    send_.HandOver(state, qp_);
    flow::HandOver(state, cc_);
    message_requester_.HandOver(state, qp_, send_);
    message_responder_.HandOver(state, names);
    // Older states do not have these.
    if (state.reading() && message_responder_.established()) qp_.hears_channel = true;
    if (state.reading() && receives_.in_use()) qp_.receiving = true;
    requester_.HandOver(state, qp_, cc_, !qp_.requests_on_channel());
    responder_.HandOver(state, qp_);
    cnps_.HandOver(state);
  }

 private:
  void ReleaseCarrier() {
    if (qp_.carrier != nullptr) qp_.carrier->Release();
    qp_.carrier = nullptr;
  }
  void StartNative(TimePoint now) {
    qp_.request_path = RequestPath::kNative;
    requester_.Start(qp_, cc_, now);
  }
  PumpResult PumpRequests(Outbox& outbox, TimePoint now, PumpBudget& budget) {
    if (qp_.requests_rest) return PumpResult::kIdle;
    const bool on_channel = qp_.requests_on_channel();
    const PumpResult result = on_channel ? message_requester_.Pump(qp_, send_, outbox, now, budget)
                                         : requester_.Pump(qp_, outbox, now, budget);
    if (result != PumpResult::kIdle || !send_.empty() || !qp_.sends()) return result;
    const TimePoint deadline =
        on_channel ? message_requester_.deadline(qp_, send_) : requester_.deadline();
    qp_.requests_rest = deadline == kNever;
    return result;
  }

  // Bytes of the requester that messages touch.
  static constexpr size_t kOfRequester = 256;

  // The members that every message on a channel touches lie together, from a cache line boundary
  // on: the second line has the queues. The native halves are large and follow.
  alignas(64) MessageRequester message_requester_;
  MessageResponder message_responder_{receives_};
  ReceiveQueue receives_;
  SendQueue send_;
  alignas(64) Requester requester_{send_};
  alignas(64) Responder responder_{receives_};
  CnpSender cnps_;
  flow::CcConfig cc_;
};

}  // namespace

std::unique_ptr<QueuePair> MakeRcQueuePair(const verbs::QpConfig& config,
                                           const flow::CcConfig& cc) {
  return std::make_unique<RcQueuePair>(config, cc);
}

std::unique_ptr<QueuePair> MakeReadyQueuePair(const verbs::QpShape& shape) {
  return std::make_unique<RcQueuePair>(shape);
}

}  // namespace rocegw::transport
