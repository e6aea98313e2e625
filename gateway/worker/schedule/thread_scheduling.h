// SPDX-License-Identifier: Apache-2.0
// How the kernel schedules a worker's thread, and whether idle processors halt while it works.
// Linux only.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "gateway/base/status.h"
#include "gateway/base/time.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::worker {

struct SchedulingParameters {
  // Time slice that the thread asks of the scheduler (sched(7), Linux 6.12 and later; no privilege
  // needed). A thread that wakes up preempts threads with longer slices, and they preempt it when
  // its slice ends. 0: the kernel's default.
  Duration slice{};
  // Priority of SCHED_FIFO, 1 to 99; needs CAP_SYS_NICE. 0: not a real-time thread.
  uint32_t realtime_priority = 0;
  // Keeps idle processors of the machine from halting while the worker has something to do; needs
  // access to /dev/cpu_dma_latency.
  bool keep_processors_awake = false;
};

// Asks for the slice, and lets the thread's timers expire on time. A kernel that does not know
// slices ignores the request.
void RequestSlice(Duration slice);

// Makes `thread` a real-time thread.
Status MakeRealtime(pthread_t thread, uint32_t priority);

// The kernel's request for wake-ups without latency (Documentation/power/pm_qos_interface.rst).
// While it is held, idle processors poll instead of halting. Belongs to one thread.
class WakeLatencyRequest {
 public:
  // Opens the device, to see whether the request will be allowed.
  static Status Check();

  bool held() const { return device_.valid(); }
  // Both do nothing if the request is in that state. Failures are ignored: only latency suffers.
  void Hold();
  void Release() { device_ = UniqueFd(); }

 private:
  UniqueFd device_;
};

}  // namespace rocegw::worker
