// SPDX-License-Identifier: Apache-2.0
// Control messages of a worker: taken from the ring between bursts, applied by the handlers of
// their objects, answered when the worker no longer uses what they remove. Belongs to one worker.
#pragma once

#include "gateway/metrics/worker_counters.h"
#include "gateway/worker/control/network_control.h"
#include "gateway/worker/control/queue_control.h"
#include "gateway/worker/control/queue_pair_control.h"
#include "gateway/worker/control/region_control.h"
#include "gateway/worker/control/session_control.h"
#include "gateway/worker/control/worker_link.h"

namespace rocegw::worker {

class ControlHandler {
 public:
  // Parts of the worker that the handler uses; they must outlive it.
  struct Uses {
    WorkerLink& link;
    ControlSender& control;
    const SessionTable& sessions;
    Scheduler& scheduler;
    MemoryExecutor& memory;
    SessionControl& session_control;
    QueuePairControl& queue_pair_control;
    QueueControl& queue_control;
    RegionControl& region_control;
    NetworkControl& network_control;
    metrics::WorkerCounters& counters;
  };
  explicit ControlHandler(const Uses& uses) : uses_(uses) {}

  // Returns true if messages wait.
  bool has_messages() const { return !uses_.link.to_worker.empty(); }
  // Applies messages, after the memory operations that may concern what they remove. Returns true
  // if there was one, or if an answer that waited was sent.
  bool Apply();

 private:
  void Dispatch(const ControlMessage& message);

  const Uses uses_;
};

}  // namespace rocegw::worker
