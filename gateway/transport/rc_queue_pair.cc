// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/queue_pair.h"
#include "gateway/transport/requester.h"
#include "gateway/transport/responder.h"

namespace rocegw::transport {
namespace {

// What a flow that runs takes over from modify_qp.
constexpr uint32_t kRequesterLimits =
    verbs::kAttrTimeout | verbs::kAttrRetryCnt | verbs::kAttrRnrRetry;

class RcQueuePair final : public QueuePair {
 public:
  RcQueuePair(const verbs::QpConfig& config, const flow::CcConfig& cc)
      : QueuePair(config), cc_(cc) {
    requester_.SetSize(config.sq_entries, config.max_send_sge);
  }
  explicit RcQueuePair(const verbs::QpShape& shape) {
    requester_.Reserve(shape.sq_entries, shape.max_send_sge);
    responder_.Reserve(shape.rd_atomic);
  }

  void Adopt(const verbs::QpConfig& config, const flow::CcConfig& cc) override {
    Bind(config);
    requester_.SetSize(config.sq_entries, config.max_send_sge);
    cc_ = cc;
  }

  void OnAtomicResult(const AccessTag& tag, uint64_t original) override {
    responder_.OnAtomicResult(tag, original);
  }
  TimePoint deadline() const override {
    return Earlier(responder_.deadline(), qp_.sends() ? requester_.deadline() : kNever);
  }
  Psns psns() const override {
    return {requester_.flow().next(), requester_.flow().una(), responder_.expected()};
  }
  uint32_t outstanding() const override { return requester_.outstanding(); }

 protected:
  bool DoReset() override {
    const bool sends = requester_.Reset(qp_);
    const bool receives = responder_.Reset(qp_);
    return sends && receives;
  }
  void DoReadyToReceive(TimePoint now) override {
    responder_.Start(qp_);
    requester_.Open(cc_, now);
  }
  void DoReadyToSend(TimePoint now) override { requester_.Start(qp_, cc_, now); }
  void DoAttributes(uint32_t mask) override {
    if ((mask & kRequesterLimits) != 0) requester_.Configure(qp_, cc_);
    if ((mask & verbs::kAttrMaxDestRdAtomic) != 0) responder_.SetDepth(qp_);
  }
  bool Drained() const override { return requester_.drained(); }

  void DoFlush(Outbox& outbox) override {
    requester_.Flush(qp_, outbox);
    responder_.Flush(qp_, outbox);
  }

  PumpResult DoPump(Outbox& outbox, TimePoint now, PumpBudget& budget) override {
    const bool requests_first = requests_first_;
    PumpResult requests = PumpResult::kMore;
    if (requests_first) requests = requester_.Pump(qp_, outbox, now, budget);
    const PumpResult replies = responder_.Pump(qp_, outbox, requester_.flow(), now, budget);
    // Answers that use up a whole turn do not use up the next one as well.
    requests_first_ = !budget.left() && !requests_first;
    if (!requests_first) requests = requester_.Pump(qp_, outbox, now, budget);
    if (replies == PumpResult::kMore || requests == PumpResult::kMore) return PumpResult::kMore;
    return replies == PumpResult::kBlocked ? replies : requests;
  }

  metrics::DropReason DoPacket(Outbox& outbox, const wire::RxPacket& packet,
                               TimePoint now) override {
    const bool cnp = packet.traits->service == wire::Service::kCnp;
    if (!cnp && packet.traits->service != wire::Service::kRc)
      return metrics::DropReason::k_wrong_service;
    if (!qp_.receives()) return metrics::DropReason::k_qp_state;
    // Nothing from elsewhere may touch a connection.
    if (packet.meta.source != qp_.attributes.path.destination ||
        packet.meta.destination != qp_.attributes.path.source) {
      return metrics::DropReason::k_wrong_address;
    }
    if (cnp) {
      qp_.counters->cnp_rx_packets.Add();
      requester_.OnCnp(now);
      return metrics::DropReason::kNone;
    }
    return packet.traits->is_request ? responder_.OnRequest(qp_, outbox, packet)
                                     : requester_.OnResponse(qp_, outbox, packet, now);
  }

  void DoMemoryDone(Outbox& outbox) override {
    responder_.OnMemoryDone(qp_, outbox);
    requester_.OnMemoryDone(qp_, outbox);
  }

  void DoMemoryFault(Outbox& outbox, const AccessTag& tag) override {
    switch (tag.purpose) {
      case AccessPurpose::kSendPayload:
      case AccessPurpose::kReadPlacement:
      case AccessPurpose::kAtomicPlacement:
        requester_.OnMemoryFault(qp_, outbox, tag);
        return;
      default:
        responder_.OnMemoryFault(qp_, outbox, tag);
    }
  }

  void DoDeadline(Outbox& outbox, TimePoint now) override {
    responder_.OnDeadline(now);
    requester_.OnDeadline(qp_, outbox, now);
  }

 private:
  Requester requester_;
  Responder responder_;
  flow::CcConfig cc_;
  bool requests_first_ = false;
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
