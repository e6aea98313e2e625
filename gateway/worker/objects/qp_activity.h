// SPDX-License-Identifier: Apache-2.0
// Work of queue pairs to come: those that may have something to send go to the scheduler, and
// deadlines into the timer wheel. Belongs to one worker.
#pragma once

#include "gateway/base/timing/timer_wheel.h"
#include "gateway/flow/carrier.h"
#include "gateway/flow/frame_ref.h"
#include "gateway/worker/objects/qp_table.h"
#include "gateway/worker/objects/record_heap.h"
#include "gateway/worker/objects/worker_session.h"
#include "gateway/worker/schedule/scheduler.h"

namespace rocegw::worker {

class QpActivity {
 public:
  // The arguments must outlive the object.
  QpActivity(QpTable& qps, Scheduler& scheduler, TimerWheel& wheel)
      : qps_(qps), scheduler_(scheduler), wheel_(wheel) {}

  void MakeRunnable(QpSlot& slot, SlotHandle handle) {
    if (slot.runnable) return;
    slot.runnable = true;
    scheduler_.Push(*slot.session->account, handle);
  }
  // Arms a timer if the deadline is earlier than the timers that are armed.
  void ArmDeadline(QpSlot& slot, SlotHandle handle) {
    slot.deadline = slot.qp->deadline();
    Arm(slot, handle);
  }
  // Called after an event of the queue pair: it may have something to send, and its deadline may
  // have moved.
  void AfterEvent(QpSlot& slot, SlotHandle handle) {
    MakeRunnable(slot, handle);
    ArmDeadline(slot, handle);
    if (slot.records != 0) RecordHeap::Update(slot);
  }

  // Handles a timer of a queue pair. Returns true if something was due.
  bool OnTimer(SlotHandle handle, transport::Outbox& outbox, TimePoint now);
  // Handle a frame that has arrived, and a queue pair's turn in a carrier's wait queue. Queue pairs
  // that no longer exist are ignored.
  void OnArrived(const flow::Carrier& carrier, const flow::FrameRef& frame);
  void OnTurn(const flow::Carrier& carrier, SlotHandle handle);

 private:
  void Arm(QpSlot& slot, SlotHandle handle) {
    if (slot.deadline >= slot.armed) return;
    slot.armed = slot.deadline;
    wheel_.Arm(handle, slot.deadline);
  }

  QpTable& qps_;
  Scheduler& scheduler_;
  TimerWheel& wheel_;
};

}  // namespace rocegw::worker
