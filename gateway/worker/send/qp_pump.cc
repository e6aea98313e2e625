// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/send/qp_pump.h"

#include <algorithm>

namespace rocegw::worker {
namespace {

// Limit of packets that all queue pairs together send in an iteration.
constexpr uint32_t kPacketsPerIteration = 256;

}  // namespace

// Returns the number of packets sent.
uint32_t QpPump::RunTurn(QpSlot& slot, const Scheduler::Turn& turn, TimePoint now) {
  slot.runnable = false;
  if (slot.session->failed) return 0;
  slot.bytes_left = std::min(slot.bytes_left + Scheduler::kBytesPerTurn, Scheduler::kBytesPerTurn);
  const int64_t bytes = std::min(slot.bytes_left, turn.bytes);
  transport::PumpBudget budget{turn.packets, bytes};
  const transport::PumpResult result = slot.qp->Pump(uses_.outbox, now, budget);
  slot.bytes_left -= bytes - budget.bytes;
  turn.account->unpaid_bytes += budget.asked;
  uses_.scheduler.EndTurn(now, turn);
  if (result == transport::PumpResult::kMore) {
    slot.runnable = true;
    uses_.scheduler.PushAgain(*turn.account, turn.qp);
  } else {
    slot.bytes_left = std::min<int64_t>(slot.bytes_left, 0);
  }
  uses_.activity.ArmDeadline(slot, turn.qp);
  return turn.packets - budget.packets;
}

// Prefetches the queue pairs of the pool whose turns come soon. Those of a short queue have become
// ready in this iteration: their doorbells or packets have brought them into the cache.
void QpPump::PrefetchAhead(const GrowingRing<SlotHandle>& ready) const {
  using enum transport::NextEvent;
  constexpr size_t kLinksAhead = 2;
  constexpr size_t kAhead = 5;
  if (ready.size() < kPacketsPerIteration) return;
  if (const QpSlot* const slot = uses_.qps.Find(ready[kAhead])) slot->qp->Prefetch(kTurn);
  if (const QpSlot* const slot = uses_.qps.Find(ready[kLinksAhead])) slot->qp->PrefetchLinks(kTurn);
}

bool QpPump::Run(TimePoint now) {
  bool busy = false;
  uint32_t sent = 0;
  Scheduler::Turn turn;
  uses_.transmit.ForgetPortFull();
  uses_.scheduler.Mark();
  while (sent < kPacketsPerIteration && !uses_.transmit.port_full() &&
         uses_.scheduler.NextTurn(now, turn)) {
    busy = true;
    if (uses_.qps.outgrows_caches()) PrefetchAhead(turn.account->ready);
    QpSlot* const slot = uses_.qps.Find(turn.qp);
    if (slot == nullptr) continue;
    turn.packets = uses_.memory.MaySend(*slot->session, turn.packets);
    if (turn.packets == 0) {
      uses_.counters.turn_held_back_events.Add();
      held_back_.push_back(turn.qp);
      continue;
    }
    sent += RunTurn(*slot, turn, now);
  }
  for (const SlotHandle handle : held_back_) {
    if (QpSlot* const slot = uses_.qps.Find(handle))
      uses_.scheduler.PushAgain(*slot->session->account, handle);
  }
  held_back_.clear();
  for (const RateReached& reached : uses_.scheduler.TakeHeldBack())
    uses_.control.Notify({0, reached});
  return busy;
}

}  // namespace rocegw::worker
