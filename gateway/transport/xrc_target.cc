// SPDX-License-Identifier: Apache-2.0
// Receiving end of XRC (IBTA annex A14): an RC responder connected to one XRC_SEND queue pair,
// without receives, completion queue or protection domain of its own. Every request names a shared
// receive queue of the domain, and uses that queue's receives, completion queue, protection domain
// and session memory. The queue pair's context therefore holds the domain's values between
// requests, and the values of the queue's owner while a request executes.
#include <memory>
#include <unordered_map>
#include <vector>

#include "gateway/flow/flow.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/transport/native/cnp_sender.h"
#include "gateway/transport/native/requester.h"
#include "gateway/transport/native/responder.h"
#include "gateway/transport/queue_pair.h"
#include "gateway/transport/queues/ticket_runs.h"
#include "gateway/transport/xrc_domain.h"

namespace rocegw::transport {
namespace {

// Retry interval while the owner's session takes no memory operations.
constexpr Duration kOwnerBusy = Microseconds(100);
// Limit of the shared receive queues that a queue pair's messages have named.
constexpr uint32_t kMostSrqs = 1u << 20;
// Limit of memory operations that are not done. An owner whose memory takes one operation for ever
// keeps those of all others from being settled, and each may have a reply.
constexpr uint32_t kMostTickets = 4096;

// Part of a QpContext that belongs to the owner of a shared receive queue.
struct OwnerValues {
  SessionId session;
  uint32_t handle = 0;
  uint32_t pd = 0;
  uint32_t srq = 0;
  uint16_t rq_entries = 0;
  uint8_t max_recv_sge = 0;
  uint32_t rq_stride = 0;
  uint16_t rq_payload_stride = 0;
  uint8_t* rq_payload = nullptr;
  SharedReceives* receives = nullptr;
  verbs::CompletionQueue* cq = nullptr;
  SessionIndex owner;
};

OwnerValues OwnerValuesOf(const QpContext& qp) {
  const verbs::QpMessageConfig& c = qp.config;
  return {c.session,
          c.qp_handle,
          c.pd,
          qp.rare.srq,
          qp.rare.rq_entries,
          c.max_recv_sge,
          qp.rare.rq_stride,
          c.rq_payload_stride,
          qp.payload.rq_payload,
          qp.srq,
          qp.recv_cq,
          qp.owner};
}

OwnerValues OwnerValuesOf(const XrcReceiver& receiver) {
  const verbs::SrqConfig& c = receiver.receives->config();
  return {c.session,       c.srq_handle,      c.pd,        c.srq_handle,
          c.payload_slots, c.max_sge,         c.stride,    c.payload_stride,
          c.payload,       receiver.receives, receiver.cq, receiver.owner};
}

void Give(const OwnerValues& from, QpContext& qp) {
  verbs::QpMessageConfig& c = qp.config;
  c.session = from.session;
  c.qp_handle = from.handle;
  c.pd = qp.rare.srq_pd = from.pd;
  qp.rare.srq = from.srq;
  qp.rare.rq_entries = from.rq_entries;
  c.max_recv_sge = from.max_recv_sge;
  qp.rare.rq_stride = from.rq_stride;
  c.rq_payload_stride = from.rq_payload_stride;
  qp.payload.rq_payload = from.rq_payload;
  qp.TakeReceivesFrom(from.receives);
  qp.recv_cq = qp.send_cq = from.cq;
  qp.owner = from.owner;
}

class XrcTarget final : public QueuePair, private SrqSelector, private XrcMember {
 public:
  XrcTarget(const verbs::QpConfig& config, const flow::CcConfig& cc, XrcDomain& domain)
      : QueuePair(config), domain_(domain), cc_(cc) {
    domain_.Join(*this);
  }
  ~XrcTarget() override { domain_.Leave(*this); }

  void OnAtomicResult(const AccessTag& tag, uint64_t original) override {
    responder_.OnAtomicResult(tag, original);
  }
  TimePoint deadline() const override { return Earlier(responder_.deadline(), again_); }
  Psns psns() const override { return {Psn(), Psn(), responder_.expected()}; }
  void GiveBackReceives() override { (void)ResetReceives(); }
  void SwitchCc(const flow::CcConfig& cc, TimePoint now) override {
    cc_ = cc;
    if (!qp_.receives()) return;
    flow_.SwitchCc(CcConfigOf(qp_, cc_), now);
    qp_.ecn = ProfileOf(cc_).ecn && flow_.uses_marks();
  }

 protected:
  bool DoReset() override {
    const bool reset = ResetReceives();
    responder_.Reset();
    flow_ = flow::Flow();
    // The queue pair uses receives of many queues, so it never reports kLastWqeReached.
    qp_.last_receive_reported = true;
    return reset;
  }
  void DoReadyToReceive(TimePoint now) override {
    responder_.Start(qp_);
    flow_.Open(CcConfigOf(qp_, cc_), now);
    cnps_.Start(now);
    qp_.ecn = ProfileOf(cc_).ecn && flow_.uses_marks();
    qp_.last_receive_reported = true;
  }
  void DoAttributes(uint32_t mask) override {
    if ((mask & verbs::kAttrMaxDestRdAtomic) != 0) responder_.SetDepth(qp_);
  }
  bool Drained() const override { return true; }

  void DoFlush(Outbox& outbox) override {
    const Visit visit(*this);
    responder_.Stop();
    for (const auto& [number, named] : srqs_) {
      SwitchTo(named.get());
      named->receives.Flush(qp_, outbox, qp_.tickets_issued);
      List(*named);
    }
  }

  PumpResult PumpAnswers(Outbox& outbox, TimePoint now, PumpBudget& budget) override {
    return DoPump(outbox, now, budget);
  }
  PumpResult DoPump(Outbox& outbox, TimePoint now, PumpBudget& budget) override {
    const Visit visit(*this);
    again_ = kNever;
    if (const auto next = responder_.NextRead(); next.has_value()) {
      NamedSrq* const named = SrqOf(*next);
      SwitchTo(named);
      if (named != nullptr && !outbox.MayAccess(qp_)) {
        again_ = now + kOwnerBusy;
        return PumpResult::kBlocked;
      }
    }
    return responder_.Pump(qp_, outbox, flow_, now, budget);
  }

  metrics::DropReason DoPacket(Outbox& outbox, const wire::RxPacket& packet,
                               TimePoint now) override {
    const bool cnp = packet.traits->service == wire::Service::kCnp;
    if (!cnp && (packet.traits->service != wire::Service::kXrc || !packet.traits->is_request))
      return metrics::DropReason::k_wrong_service;
    if (!qp_.receives()) return metrics::DropReason::k_qp_state;
    if (!qp_.IsFromPeer(packet.meta)) return metrics::DropReason::k_wrong_address;
    if (cnp) {
      qp_.worker->counters.cnp_rx_packets.Add();
      flow_.OnCnp(now);
      return metrics::DropReason::kNone;
    }
    cnps_.OnPacket(qp_, outbox, cc_, packet, now);
    const Visit visit(*this);
    NamedSrq* const named = SrqOf(packet.headers.xrc_srq);
    SwitchTo(named);
    // A killed process stops taking operations first; its requests are refused once its session
    // closed.
    if (named != nullptr && !outbox.MayAccess(qp_)) return metrics::DropReason::k_write_pending;
    if (qp_.tickets_issued - qp_.tickets_done >= kMostTickets)
      return metrics::DropReason::k_write_pending;
    const metrics::DropReason reason = responder_.OnRequest(qp_, outbox, packet);
    if (named != nullptr) List(*named);
    return reason;
  }

  uint32_t DoneUpTo(uint32_t ticket) override {
    NoteTickets();
    return tickets_.Done(ticket);
  }

  void DoMemoryDone(Outbox& outbox) override {
    const Visit visit(*this);
    responder_.OnMemoryDone(qp_);
    std::erase_if(waiting_, [&](NamedSrq* named) {
      SwitchTo(named);
      named->receives.OnMemoryDone(qp_, outbox);
      named->listed = named->receives.waits();
      return !named->listed;
    });
  }

  void DoMemoryFault(Outbox& outbox, const AccessTag& tag) override {
    const Visit visit(*this);
    const uint32_t number = tickets_.SrqOf(tag.ticket);
    // Receives that later requests filled in other queues fail as well.
    for (NamedSrq* const named : waiting_)
      if (named->number != number)
        (void)named->receives.FailFrom(tag.ticket, verbs::WcStatus::kFlush);
    NamedSrq* const named = SrqOf(number);
    SwitchTo(named);
    responder_.UseReceives(named != nullptr ? named->receives : no_receives_);
    responder_.OnMemoryFault(qp_, outbox, tag);
    if (named != nullptr) List(*named);
  }

  void DoDeadline(Outbox&, TimePoint now) override {
    responder_.OnDeadline(now);
    if (again_ <= now) again_ = kNever;
  }
  void DoHandOver(hand_over::StateStream& state, flow::CarrierNames&) override {
    // First, because a switch of the context notes tickets.
    tickets_.HandOver(state);
    const Visit visit(*this);
    const uint32_t count = state.Count(srqs_.size(), kMostSrqs);
    auto at = srqs_.begin();
    for (uint32_t i = 0; i < count && state.ok(); ++i) {
      const uint32_t number = state.Carry(state.reading() ? 0 : (at++)->first);
      NamedSrq* const named = SrqOf(number);
      if (!state.Require(named != nullptr, "a shared receive queue is missing")) return;
      SwitchTo(named);
      named->receives.HandOver(state, qp_);
      SwitchTo(nullptr);
    }
    state.Require(waiting_.empty(), "receives are being completed");
    responder_.HandOver(state, qp_);
    flow::HandOver(state, cc_);
    flow_.HandOver(state, ProfileOf(cc_));
    state(again_);
    cnps_.HandOver(state);
  }

 private:
  // A shared receive queue that requests have named.
  struct NamedSrq {
    uint32_t number = 0;
    OwnerValues owner_values;
    ReceiveQueue receives;
    bool listed = false;
  };

  // Restores the context at the end of its scope: reports of memory operations arrive while a
  // request executes.
  class Visit {
   public:
    explicit Visit(XrcTarget& target) : target_(target), before_(target.at_) {}
    ~Visit() { target_.SwitchTo(before_); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    XrcTarget& target_;
    NamedSrq* before_;
  };

  NamedSrq* SrqOf(uint32_t number) {
    if (at_ != nullptr && at_->number == number) return at_;
    const auto known = srqs_.find(number);
    if (known != srqs_.end()) return known->second.get();
    const XrcReceiver* const receiver = domain_.Find(number);
    if (receiver == nullptr) return nullptr;
    auto named = std::make_unique<NamedSrq>();
    named->number = number;
    named->owner_values = OwnerValuesOf(*receiver);
    return srqs_.emplace(number, std::move(named)).first->second.get();
  }

  ReceiveQueue* Enter(uint32_t srq) override {
    NamedSrq* const named = SrqOf(srq);
    if (named == nullptr) return nullptr;
    SwitchTo(named);
    return &named->receives;
  }

  // Switches the context to the queue's owner; nullptr: to the domain.
  void SwitchTo(NamedSrq* to) {
    if (to == at_) return;
    NoteTickets();
    if (at_ == nullptr) domain_values_ = OwnerValuesOf(qp_);
    Give(to != nullptr ? to->owner_values : domain_values_, qp_);
    at_ = to;
  }

  void NoteTickets() {
    if (at_ != nullptr) tickets_.Add(at_->owner_values.session, at_->number, qp_.tickets_issued);
  }

  void List(NamedSrq& named) {
    if (named.listed || !named.receives.waits()) return;
    named.listed = true;
    waiting_.push_back(&named);
  }

  bool ResetReceives() {
    const Visit visit(*this);
    bool possible = true;
    for (const auto& [number, named] : srqs_) {
      SwitchTo(named.get());
      possible &= named->receives.Reset(qp_);
      named->listed = false;
    }
    waiting_.clear();
    return possible;
  }

  void Forget(uint32_t number) override {
    const auto known = srqs_.find(number);
    if (known == srqs_.end()) return;
    SwitchTo(nullptr);
    // The rest of a message to the removed queue is dropped.
    responder_.UseReceives(no_receives_);
    if (responder_.srq() == number) responder_.Stop();
    std::erase(waiting_, known->second.get());
    srqs_.erase(known);
    qp_.TakeDone(tickets_.Abandon(number));
  }

  XrcDomain& domain_;
  std::unordered_map<uint32_t, std::unique_ptr<NamedSrq>> srqs_;
  std::vector<NamedSrq*> waiting_;  // queues with completions that wait for memory operations
  NamedSrq* at_ = nullptr;          // owner of the context's current values; nullptr: the domain
  OwnerValues domain_values_;       // the domain's values while a queue's owner has the context
  TicketRuns tickets_;
  ReceiveQueue no_receives_;
  Responder responder_{no_receives_, *this};
  flow::Flow flow_;           // for READ responses
  TimePoint again_ = kNever;  // retry time while the owner of the next read takes no operations
  CnpSender cnps_;
  flow::CcConfig cc_;
};

}  // namespace

std::unique_ptr<QueuePair> MakeXrcTarget(const verbs::QpConfig& config, const flow::CcConfig& cc,
                                         XrcDomain& domain) {
  return std::make_unique<XrcTarget>(config, cc, domain);
}

}  // namespace rocegw::transport
