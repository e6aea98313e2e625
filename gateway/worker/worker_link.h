// SPDX-License-Identifier: Apache-2.0
// The control thread's end of one worker: a pair of SPSC rings and the descriptors that wake the
// two sides.
#pragma once

#include <atomic>

#include "gateway/base/spsc_ring.h"
#include "gateway/worker/control_message.h"

namespace rocegw::worker {

// One producer and one consumer each: to_worker is filled by the control thread, to_control by the
// worker. Owned by the daemon; outlives both.
struct WorkerLink {
  explicit WorkerLink(size_t capacity = 4096) : to_worker(capacity), to_control(capacity) {}

  SpscRing<ControlMessage> to_worker;
  SpscRing<WorkerMessage> to_control;
  int worker_wake_fd = -1;  // eventfd: the control thread writes after Push, the worker waits on it
  int control_wake_fd = -1;  // eventfd shared by all workers: they write, the control thread waits
  // Who says that it is awake looks at its ring again before it sleeps, and needs no descriptor
  // written.
  std::atomic<bool> worker_awake{false};
  std::atomic<bool> control_awake{false};
};

}  // namespace rocegw::worker
