// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/send/doorbell_scan.h"

#include <algorithm>

#include "gateway/shm/doorbell.h"
#include "gateway/worker/objects/qp_prefetch.h"

namespace rocegw::worker {
namespace {

// A session without a doorbell for this long leaves the scan list.
constexpr Duration kSessionIdle = Milliseconds(2);
// Every so many iterations all leaves are scanned, for bits whose summary bit was lost with a dead
// producer.
constexpr uint32_t kFullScanEvery = 4096;

}  // namespace

// Handles the doorbells of the queue pairs in rung_, and prefetches what the turns of these queue
// pairs will touch.
void DoorbellScan::HandleRung(const WorkerSession& session) {
  const std::span<const SlotHandle> rung = rung_;
  for (size_t i = 0; i < rung.size(); ++i) {
    if (i % QpBurst::kMost == 0 && uses_.qps.outgrows_caches())
      QpBurst(uses_.qps).PrefetchTurns(rung.subspan(i, std::min(QpBurst::kMost, rung.size() - i)));
    QpSlot* const slot = uses_.qps.Find(rung[i]);
    // A bit without a queue pair is a late doorbell or garbage; both are ignored.
    if (slot == nullptr || slot->session != &session) continue;
    slot->qp->OnDoorbell(uses_.outbox);
    // The turn arms the deadline: a doorbell does not change it.
    uses_.activity.MakeRunnable(*slot, rung[i]);
  }
}

// Takes the doorbells of a session. `all`: without the summary bits.
bool DoorbellScan::TakeAll(WorkerSession& session, bool all) {
  uint32_t taken = 0;
  for (DoorbellPage& page : session.pages) {
    rung_.clear();
    const auto on_bit = [&](uint32_t bit) { rung_.push_back(page.by_bit[bit]); };
    taken += all ? shm::TakeAllDoorbells(page.memory, on_bit)
                 : shm::TakeDoorbells(page.memory, uses_.round.iteration, on_bit);
    if (!rung_.empty()) HandleRung(session);
    if (session.failed) break;
  }
  uses_.counters.doorbells_events.Add(taken);
  return taken != 0;
}

// Takes the doorbells of an active session, unless others come first. Returns true if it had some,
// or may have some at once.
bool DoorbellScan::TakeFrom(WorkerSession& session, TimePoint now, bool all) {
  if (session.failed) return false;
  Scheduler& scheduler = uses_.scheduler;
  if (scheduler.InDebt(*session.account)) {
    // The doorbells stay set until other pools have had their part.
    const bool rung = std::ranges::any_of(
        session.pages, [](const DoorbellPage& page) { return shm::HasDoorbells(page.memory); });
    if (rung) {
      scheduler.Wait(*session.account);
      session.last_active = now;
    }
    return true;
  }
  if (!all && !session.pace.MayTake(now)) return true;
  scheduler.Mark();
  if (!TakeAll(session, all)) return false;
  scheduler.ChargeTo(*session.account);
  session.last_active = now;
  session.pace.Took(now);
  return true;
}

// Requests the eventfd of a session that has been idle, then checks once more: a doorbell in
// between must not be lost. Returns true if there was none.
bool DoorbellScan::GoesIdle(WorkerSession& session, TimePoint now) {
  __atomic_store_n(&session.link.line->need_wakeup, 1u, __ATOMIC_SEQ_CST);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (session.failed || !TakeAll(session, true)) {
    session.active = false;
    return true;
  }
  __atomic_store_n(&session.link.line->need_wakeup, 0u, __ATOMIC_RELEASE);
  session.last_active = now;
  return false;
}

bool DoorbellScan::Take(TimePoint now) {
  const bool all = uses_.round.iteration % kFullScanEvery == 0;
  bool busy = false;
  for (size_t i = 0; i < active_.size();) {
    WorkerSession& session = *active_[i];
    busy |= TakeFrom(session, now, all);
    if (session.failed || now - session.last_active > kSessionIdle) {
      if (GoesIdle(session, now)) {
        active_[i] = active_.back();
        active_.pop_back();
        continue;
      }
      busy = true;
    }
    ++i;
  }
  return busy;
}

bool DoorbellScan::TakeLast(TimePoint now) {
  for (WorkerSession* session : active_) session->last_active = now - kSessionIdle - Nanoseconds(1);
  return Take(now);
}

void DoorbellScan::OnWake(SessionId id, TimePoint now) {
  WorkerSession* const session = uses_.sessions.Find(id);
  if (session == nullptr || session->failed) return;
  session->last_active = now;
  if (!session->active) {
    session->active = true;
    active_.push_back(session);
    __atomic_store_n(&session->link.line->need_wakeup, 0u, __ATOMIC_RELEASE);
  }
  TakeAll(*session, true);
}

}  // namespace rocegw::worker
