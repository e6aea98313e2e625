// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/worker.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "gateway/shm/doorbell.h"

namespace rocegw::worker {
namespace {

constexpr size_t kReceiveBurst = 64;
// Limit of packets that all queue pairs together send in an iteration.
constexpr uint32_t kPacketsPerIteration = 256;
// Limit of packets of one session that wait for its memory. The port has a thousand buffers for all
// sessions of the worker (port_config.h), and a client can make its memory wait for ever.
constexpr size_t kMostHeld = 128;
// A session without a doorbell for this long leaves the scan list.
constexpr Duration kSessionIdle = Milliseconds(2);
// Every so many iterations all leaves are scanned, for bits whose summary bit was lost with a dead
// producer.
constexpr uint32_t kFullScanEvery = 4096;
// The shortest pacing interval: a paced flow sends what is due within it at once.
constexpr Duration kTimerSlot = Microseconds(16);
// Reports are rare, because all workers write the same few cache lines.
constexpr Duration kReportTimesEvery = Milliseconds(100);
// Discovery datagrams that the control thread is given, each second and at once. The control thread
// answers half as many questions of one address; the rest leaves space for answers.
constexpr uint32_t kQuestionRate = 100;
constexpr uint32_t kQuestionBurst = 128;
constexpr uint32_t kQuestionRateOfAll = 4000;
constexpr uint32_t kQuestionBurstOfAll = 1024;

}  // namespace

Worker::Worker(WorkerOptions options)
    : options_(std::move(options)),
      counters_(*options_.counters),
      now_(options_.start),
      congestion_(options_.congestion_policy, options_.congestion.kind, options_.start),
      wheel_(options_.start, kTimerSlot),
      scheduler_(options_.clock, options_.link_bytes_per_second),
      received_(kReceiveBurst),
      questions_of_known_(options_.secret, kQuestionRate, kQuestionBurst),
      questions_of_stranger_(options_.secret, kQuestionRate, kQuestionBurst),
      questions_of_strangers_(kQuestionRateOfAll, kQuestionBurstOfAll) {}

Worker::~Worker() {
  for (const Outgoing& out : outgoing_) options_.ports[out.device]->Release(out.packet);
}

Worker::QpSlot* Worker::Slot(SlotHandle handle) {
  if (handle.index >= slots_.size()) return nullptr;
  QpSlot& slot = slots_[handle.index];
  return slot.generation == handle.generation && slot.qp != nullptr ? &slot : nullptr;
}

Worker::QpSlot* Worker::SlotOf(Qpn qpn) {
  const SlotHandle* handle = qps_.Find(qpn.value);
  return handle == nullptr ? nullptr : Slot(*handle);
}

WorkerSession* Worker::SessionOf(SessionId id) {
  const auto it = sessions_.find(id.value);
  return it == sessions_.end() ? nullptr : it->second.get();
}

void Worker::MakeRunnable(QpSlot& slot, SlotHandle handle) {
  if (slot.runnable) return;
  slot.runnable = true;
  scheduler_.Push(*slot.session->account, handle);
}

// Called after an event of the queue pair: it may have something to send, and its deadline may have
// moved.
void Worker::AfterEvent(QpSlot& slot, SlotHandle handle) {
  MakeRunnable(slot, handle);
  const TimePoint deadline = slot.qp->deadline();
  if (deadline >= slot.armed) return;
  slot.armed = deadline;
  wheel_.Arm(handle, deadline);
}

bool Worker::RunOnce(TimePoint now) {
  now_ = now;
  ++iteration_;
  scheduler_.BeginRound(now);
  bool busy = ApplyControl(now);
  busy |= CollectFromCopiers();
  busy |= ReceiveAll(now);
  busy |= ReceiveHandedOver(now);
  busy |= TakeDoorbells(now);
  busy |= RunDeadlines(now);
  ForgetStaged();
  if (options_.congestion_policy.count != 0) LookAtCongestion(now);
  busy |= channels_.LookAtCongestion(now);
  FlushMemory();
  busy |= channels_.Run(now, channel::Acks::kLater);
  // A queue pair without window on a channel waits there for its turn.
  do {
    busy |= PumpQueuePairs(now);
    busy |= SendStaged(now);
  } while (channels_.GiveTurns(now));
  FlushMemory();
  busy |= channels_.Run(now, channel::Acks::kNow);
  // Payload of frames that were rebuilt must be read before they leave, else they would carry old
  // bytes.
  FlushMemory();
  busy |= TransmitAll();
  SendCompletionEvents();
  if (now >= report_times_at_) ReportTimes();
  WakeControl();
  (busy ? counters_.loop_busy_iterations : counters_.loop_idle_iterations).Add();
  return busy;
}

bool Worker::TakeSessionDoorbells(WorkerSession& session, bool all) {
  uint32_t taken = 0;
  for (DoorbellPage& page : session.pages) {
    const auto on_bit = [&](uint32_t bit) {
      const SlotHandle handle = page.by_bit[bit];
      QpSlot* slot = Slot(handle);
      // A bit without a queue pair is a late doorbell or garbage; both are ignored.
      if (slot == nullptr || slot->session != &session) return;
      slot->qp->OnDoorbell(*this);
      AfterEvent(*slot, handle);
    };
    taken += all ? shm::TakeAllDoorbells(page.memory, on_bit)
                 : shm::TakeDoorbells(page.memory, iteration_, on_bit);
    if (session.failed) break;
  }
  counters_.doorbells_events.Add(taken);
  return taken != 0;
}

bool Worker::TakeDoorbells(TimePoint now) {
  const bool all = iteration_ % kFullScanEvery == 0;
  bool busy = false;
  for (size_t i = 0; i < active_.size();) {
    WorkerSession& session = *active_[i];
    if (!session.failed && scheduler_.InDebt(*session.account)) {
      // The doorbells stay set until other pools have had their part.
      const bool rung = std::ranges::any_of(
          session.pages, [](const DoorbellPage& page) { return shm::HasDoorbells(page.memory); });
      if (rung) {
        scheduler_.Wait(*session.account);
        session.last_active = now;
      }
      busy = true;
    } else if (!session.failed && (all || session.pace.MayTake(now))) {
      scheduler_.Mark();
      if (TakeSessionDoorbells(session, all)) {
        scheduler_.ChargeTo(*session.account);
        busy = true;
        session.last_active = now;
        session.pace.Took(now);
      }
    } else {
      busy |= !session.failed;
    }
    if (session.failed || now - session.last_active > kSessionIdle) {
      // Request the eventfd, then check once more: a doorbell in between must not be lost.
      __atomic_store_n(&session.link.line->need_wakeup, 1u, __ATOMIC_SEQ_CST);
      __atomic_thread_fence(__ATOMIC_SEQ_CST);
      if (session.failed || !TakeSessionDoorbells(session, true)) {
        session.active = false;
        active_[i] = active_.back();
        active_.pop_back();
        continue;
      }
      __atomic_store_n(&session.link.line->need_wakeup, 0u, __ATOMIC_RELEASE);
      session.last_active = now;
      busy = true;
    }
    ++i;
  }
  return busy;
}

void Worker::OnWake(SessionId id, TimePoint now) {
  WorkerSession* session = SessionOf(id);
  if (session == nullptr || session->failed) return;
  session->last_active = now;
  if (!session->active) {
    session->active = true;
    active_.push_back(session);
    __atomic_store_n(&session->link.line->need_wakeup, 0u, __ATOMIC_RELEASE);
  }
  now_ = now;
  TakeSessionDoorbells(*session, true);
}

bool Worker::PrepareSleep(TimePoint now) {
  if (scheduler_.HasReady(now) || !outgoing_.empty() || ports_hold_ || !unsent_messages_.empty() ||
      !unsent_.empty() || channels_.busy() || staged_wants_packet_) {
    return false;
  }
  ReportTimes();
  options_.link->worker_awake.store(false, std::memory_order_relaxed);
  inbox().sleeping.store(true, std::memory_order_seq_cst);
  // From here on every client writes its eventfd.
  for (WorkerSession* session : active_) session->last_active = now - kSessionIdle - Nanoseconds(1);
  bool found = TakeDoorbells(now);
  for (const HandoffRing& ring : inbox().from) found |= !ring.empty();
  found |= !options_.link->to_worker.empty();
  if (found) FinishSleep();
  return !found;
}

TimePoint Worker::NextDeadline() const {
  TimePoint next = Earlier(wheel_.NextDeadline(), scheduler_.NextOpening());
  for (const verbs::CompletionQueue* cq : timed_) next = Earlier(next, cq->due);
  return next;
}

bool Worker::RunDeadlines(TimePoint now) {
  due_.clear();
  wheel_.Advance(now, due_);
  bool busy = false;
  scheduler_.Mark();
  for (const SlotHandle handle : due_) {
    if ((handle.index & kChannelTimer) != 0) {
      busy |= channels_.OnTimer(handle.index & ~kChannelTimer, now);
      continue;
    }
    QpSlot* slot = Slot(handle);
    // The entry is stale: the deadline was armed again for a later time.
    if (slot == nullptr || (slot->armed > now && slot->armed != kNever)) continue;
    slot->armed = kNever;
    if (slot->qp->deadline() <= now) {
      slot->qp->OnDeadline(*this, now);
      busy = true;
      // The deadline is armed after the queue pair was pumped: for a paced queue pair it depends on
      // what is sent. An entry armed now would only become stale.
      MakeRunnable(*slot, handle);
      scheduler_.ChargeTo(*slot->session->account);
    } else if (slot->qp->deadline() != kNever) {
      slot->armed = slot->qp->deadline();
      wheel_.Arm(handle, slot->armed);
    }
  }
  return busy;
}

bool Worker::PumpQueuePairs(TimePoint now) {
  bool busy = false;
  uint32_t sent = 0;
  Scheduler::Turn turn;
  port_full_ = false;
  scheduler_.Mark();
  while (sent < kPacketsPerIteration && !port_full_ && scheduler_.NextTurn(now, turn)) {
    busy = true;
    QpSlot* slot = Slot(turn.qp);
    if (slot == nullptr) continue;
    if (slot->session->backlogged || slot->session->packets_held >= kMostHeld) {
      after_pump_.push_back(turn.qp);
      continue;
    }
    slot->runnable = false;
    if (slot->session->failed) continue;
    slot->bytes_left =
        std::min(slot->bytes_left + Scheduler::kBytesPerTurn, Scheduler::kBytesPerTurn);
    const int64_t bytes = std::min(slot->bytes_left, turn.bytes);
    transport::PumpBudget budget{turn.packets, bytes};
    const transport::PumpResult result = slot->qp->Pump(*this, now, budget);
    sent += turn.packets - budget.packets;
    slot->bytes_left -= bytes - budget.bytes;
    turn.account->unpaid_bytes += budget.asked;
    scheduler_.EndTurn(now, turn);
    if (result == transport::PumpResult::kMore) {
      slot->runnable = true;
      scheduler_.PushAgain(*turn.account, turn.qp);
    } else {
      slot->bytes_left = std::min<int64_t>(slot->bytes_left, 0);
    }
    const TimePoint deadline = slot->qp->deadline();
    if (deadline < slot->armed) {
      slot->armed = deadline;
      wheel_.Arm(turn.qp, deadline);
    }
  }
  for (const SlotHandle handle : after_pump_) {
    if (QpSlot* slot = Slot(handle)) scheduler_.PushAgain(*slot->session->account, handle);
  }
  after_pump_.clear();
  for (const RateReached& reached : scheduler_.TakeHeldBack()) Notify({0, reached});
  return busy;
}

port::TxPacket* Worker::NewPacket(transport::QpContext& qp) {
  port::TxPacket* packet = options_.ports[qp.config.device]->Acquire();
  if (packet == nullptr) {
    counters_.tx_pushback_events.Add();
    port_full_ = true;
  } else {
    packet->source_qpn = qp.config.qpn;
  }
  return packet;
}

void Worker::Send(transport::QpContext& qp, port::TxPacket* packet) {
  WorkerSession& session = OwnerOf(qp);
  const Outgoing out{packet, qp.config.device, session.account};
  scheduler_.OnSent(*session.account, packet->length + wire::kIcrcLength);
  // With a copier, packets stay in order behind reads that are not done yet.
  if (session.link.copier == nullptr || !session.MustWait()) {
    outgoing_.push_back(out);
    return;
  }
  session.held.push_back(out);
  ++session.packets_held;
  ListOps(session);
}

// Flushes the ports. A port that still holds packets, for lack of space or of the neighbour's
// address, must be flushed again by this worker.
void Worker::FlushPorts() {
  ports_hold_ = false;
  for (port::PacketPort* port : options_.ports) ports_hold_ |= !port->Flush();
}

bool Worker::TransmitAll() {
  if (outgoing_.empty()) {
    if (ports_hold_) FlushPorts();
    return false;
  }
  scheduler_.Mark();
  size_t kept = 0;
  bool progress = false;
  const bool contended = scheduler_.contended();
  for (size_t begin = 0; begin < outgoing_.size();) {
    const uint32_t device = outgoing_[begin].device;
    Account* const account = outgoing_[begin].account;
    port::PacketPort& port = *options_.ports[device];
    burst_.clear();
    size_t end = begin;
    // With several active pools, the packets of each are transmitted and measured separately.
    for (; end < outgoing_.size() && outgoing_[end].device == device &&
           (!contended || outgoing_[end].account == account);
         ++end) {
      port::TxPacket* packet = outgoing_[end].packet;
      // Length 0: its payload could not be read, so the packet is void.
      if (packet->length == 0) {
        port.Release(packet);
        continue;
      }
      outgoing_[begin + burst_.size()] = outgoing_[end];
      burst_.push_back(packet);
    }
    uint64_t bytes = 0;
    for (const port::TxPacket* packet : burst_) bytes += packet->length + wire::kIcrcLength;
    const size_t taken = port.Transmit(burst_);
    for (size_t i = taken; i < burst_.size(); ++i) {
      bytes -= burst_[i]->length + wire::kIcrcLength;
      outgoing_[kept++] = outgoing_[begin + i];
    }
    counters_.tx_packets.Add(taken);
    counters_.tx_bytes.Add(bytes);
    if (taken < burst_.size()) counters_.tx_pushback_events.Add();
    progress |= taken != 0;
    begin = end;
    if (!contended) continue;
    port.Flush();
    if (account == nullptr) {
      scheduler_.ChargeNobody();
    } else {
      scheduler_.ChargeTo(*account);
    }
  }
  outgoing_.resize(kept);
  FlushPorts();
  return progress;
}

bool Worker::TrySend(verbs::CompletionQueue& cq) {
  const rocegw_completion_event event{cq.config().cookie, cq.config().cq_handle, 0};
  const ssize_t n = send(cq.config().event_fd, &event, sizeof event, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && errno == EAGAIN) return false;
  if (n < 0) return true;  // the channel's other end is closed
  ++cq.events_sent;
  counters_.cq_event_events.Add();
  return true;
}

void Worker::SendCompletionEvents() {
  // A channel holds some hundred events; queues whose event does not fit wait in unsent_, once
  // each.
  if (!unsent_.empty()) {
    std::erase_if(unsent_, [&](verbs::CompletionQueue* cq) {
      if (!TrySend(*cq)) return false;
      cq->event_pending = false;
      return true;
    });
  }
  scheduler_.Mark();
  for (verbs::CompletionQueue* cq : fresh_) {
    cq->listed = false;
    if (const uint32_t woken = cq->WakePollers(); woken != 0) counters_.cq_wake_events.Add(woken);
    SendEventIfDue(*cq);
    scheduler_.Note(*static_cast<WorkerSession*>(cq->owner)->account, 1, 0);
  }
  fresh_.clear();
  scheduler_.ChargeNoted();
  if (timed_.empty()) return;
  std::erase_if(timed_, [&](verbs::CompletionQueue* cq) {
    if (cq->due <= now_) SendEventIfDue(*cq);
    cq->timed = cq->due != kNever;
    return !cq->timed;
  });
}

void Worker::SendEventIfDue(verbs::CompletionQueue& cq) {
  const bool event = cq.TakeEvent(now_);
  if (cq.due != kNever && !cq.timed) {
    cq.timed = true;
    timed_.push_back(&cq);
  }
  if (!event || cq.event_pending || TrySend(cq)) return;
  cq.event_pending = true;
  unsent_.push_back(&cq);
}

bool Worker::MayAccess(transport::QpContext& qp) {
  const WorkerSession& session = OwnerOf(qp);
  return !session.failed && !session.backlogged;
}

void Worker::Completed(transport::QpContext& qp, Duration took) {
  WorkerSession& session = OwnerOf(qp);
  if (session.operations.count() == 0) with_times_.push_back(&session);
  session.operations.Add(took);
}

void Worker::ReportTimes(WorkerSession& session) {
  if (session.link.share != nullptr) session.link.share->operations.Add(session.operations);
  session.operations = {};
}

void Worker::ReportTimes() {
  for (WorkerSession* const session : with_times_) ReportTimes(*session);
  with_times_.clear();
  report_times_at_ = now_ + kReportTimesEvery;
}

void Worker::Event(transport::QpContext& qp, verbs::AsyncEvent event) {
  AsyncEventRaised raised{qp.config.session,   event,          ROCEGW_OBJECT_QP,
                          qp.config.qp_handle, qp.rare.cookie, qp.config.qpn};
  // An XRC receiving queue pair belongs to the domain, whichever session its messages are for.
  const QpSlot* const slot = Slot(qp.handle);
  if (qp.config.type == verbs::QpType::kXrcReceive && slot != nullptr)
    raised.session = slot->session->link.session;
  if (event == verbs::AsyncEvent::kCqError) {
    raised.session = qp.config.session;
    const verbs::CompletionQueue& cq = qp.send_cq->TakeOverrun() ? *qp.send_cq : *qp.recv_cq;
    raised.kind = ROCEGW_OBJECT_CQ;
    raised.handle = cq.config().cq_handle;
    raised.cookie = cq.config().cookie;
  }
  if (event == verbs::AsyncEvent::kSrqLimitReached) return ReportLimitReached(qp.srq->config());
  Notify({0, raised});
}

void Worker::Fault(transport::QpContext& qp, const char* reason) {
  WorkerSession& session = OwnerOf(qp);
  if (!session.failed) counters_.client_fault_events.Add();
  Stop(session, reason);
}

void Worker::Stop(WorkerSession& session, const char* reason) {
  if (session.failed) return;
  session.failed = true;
  Notify({0, SessionStopped{session.link.session, reason}});
}

}  // namespace rocegw::worker
