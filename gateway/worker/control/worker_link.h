// SPDX-License-Identifier: Apache-2.0
// Link between the control thread and one worker: a pair of SPSC rings and the descriptors that
// wake the two sides.
#pragma once

#include <atomic>

#include "gateway/base/containers/spsc_ring.h"
#include "gateway/worker/control/control_message.h"

namespace rocegw::worker {

// The control thread fills to_worker, the worker fills to_control. Owned by Workers
// (datapath/workers.h); outlives both threads' use.
struct WorkerLink {
  explicit WorkerLink(size_t capacity = 4096) : to_worker(capacity), to_control(capacity) {}

  SpscRing<ControlMessage> to_worker;
  SpscRing<WorkerMessage> to_control;
  int worker_wake_fd = -1;  // eventfd: the control thread writes after Push, the worker waits on it
  int control_wake_fd = -1;  // eventfd shared by all workers: they write, the control thread waits
  // A side that is marked awake checks its ring again before it sleeps, so its descriptor need not
  // be written.
  std::atomic<bool> worker_awake{false};
  std::atomic<bool> control_awake{false};
};

}  // namespace rocegw::worker
