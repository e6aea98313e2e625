// SPDX-License-Identifier: Apache-2.0
// Turns of queue pairs that have something to send, in the order of the scheduler. Belongs to one
// worker.
#pragma once

#include <vector>

#include "gateway/transport/outbox.h"
#include "gateway/worker/control/control_sender.h"
#include "gateway/worker/memory/memory_executor.h"
#include "gateway/worker/objects/qp_activity.h"
#include "gateway/worker/send/transmit_queue.h"

namespace rocegw::worker {

class QpPump {
 public:
  // Parts of the worker that the pump uses; they must outlive it.
  struct Uses {
    QpTable& qps;
    QpActivity& activity;
    Scheduler& scheduler;
    TransmitQueue& transmit;
    ControlSender& control;
    transport::Outbox& outbox;
    const MemoryExecutor& memory;
    metrics::WorkerCounters& counters;
  };
  explicit QpPump(const Uses& uses) : uses_(uses) {}

  // Lets queue pairs send until the iteration's limit. Returns true if one had a turn.
  bool Run(TimePoint now);

 private:
  void PrefetchAhead(const GrowingRing<SlotHandle>& ready) const;
  uint32_t RunTurn(QpSlot& slot, const Scheduler::Turn& turn, TimePoint now);

  const Uses uses_;
  // Queue pairs of sessions and pools that have too much waiting for their memory.
  std::vector<SlotHandle> held_back_;
};

}  // namespace rocegw::worker
