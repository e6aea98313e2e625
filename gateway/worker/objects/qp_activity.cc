// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/objects/qp_activity.h"

namespace rocegw::worker {

bool QpActivity::OnTimer(SlotHandle handle, transport::Outbox& outbox, TimePoint now) {
  QpSlot* const slot = qps_.Find(handle);
  // The entry is stale: the deadline was armed again for a later time.
  if (slot == nullptr || (slot->armed > now && slot->armed != kNever)) return false;
  slot->armed = kNever;
  // Most timers find that the deadline has moved. The copy in the slot says so without a look at
  // the queue pair, most of which has left the caches by now.
  if (slot->deadline <= now) slot->deadline = slot->qp->deadline();
  if (slot->deadline > now) {
    Arm(*slot, handle);
    return false;
  }
  slot->qp->OnDeadline(outbox, now);
  // The deadline is armed after the queue pair was pumped: for a paced queue pair it depends on
  // what is sent. An entry armed now would only become stale.
  MakeRunnable(*slot, handle);
  if (slot->records != 0) RecordHeap::Update(*slot);
  scheduler_.ChargeTo(*slot->session->account);
  return true;
}

void QpActivity::OnArrived(const flow::Carrier& carrier, const flow::FrameRef& frame) {
  if (frame.owner.kind() != WorkerObject::Kind::kQueuePair) return;
  QpSlot* const slot = qps_.FindLinked(frame.owner.slot());
  if (slot == nullptr) return;
  if (slot->qp->OnArrived(carrier, frame)) MakeRunnable(*slot, frame.owner.slot());
}

void QpActivity::OnTurn(const flow::Carrier& carrier, SlotHandle handle) {
  QpSlot* const slot = qps_.FindLinked(handle);
  if (slot == nullptr) return;
  slot->qp->OnTurn(carrier);
  MakeRunnable(*slot, handle);
}

}  // namespace rocegw::worker
