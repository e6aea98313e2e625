// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/schedule/thread_scheduling.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace rocegw::worker {
namespace {

constexpr char kLatencyDevice[] = "/dev/cpu_dma_latency";
// The kernel rounds timeouts of ordinary threads up by 50 us otherwise, as long as an
// acknowledgement waits.
constexpr unsigned long kTimerSlackNs = 1000;

// struct sched_attr of the kernel (linux/sched/types.h), whose header clashes with the C library's.
struct SchedAttributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime_ns;  // SCHED_OTHER: the slice
  uint64_t deadline_ns;
  uint64_t period_ns;
};

}  // namespace

void RequestSlice(Duration slice) {
  prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
  if (slice.ns == 0) return;
  SchedAttributes attributes{};
  // The nice value stays what the daemon was started with.
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 ||
      attributes.policy != SCHED_OTHER)
    return;
  attributes.size = sizeof attributes;
  attributes.runtime_ns = static_cast<uint64_t>(slice.ns);
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

Status MakeRealtime(pthread_t thread, uint32_t priority) {
  sched_param parameters{};
  parameters.sched_priority = static_cast<int>(priority);
  const int error = pthread_setschedparam(thread, SCHED_FIFO, &parameters);
  if (error == 0) return OkStatus();
  return Status(error, std::string("cannot make a worker a real-time thread: ") +
                           std::strerror(error) +
                           "; give the daemon CAP_SYS_NICE or set waiting.realtime_priority: 0");
}

Status WakeLatencyRequest::Check() {
  if (const UniqueFd device(open(kLatencyDevice, O_WRONLY | O_CLOEXEC)); device.valid())
    return OkStatus();
  const int error = errno;
  return Status(error, std::string("cannot open ") + kLatencyDevice + ": " + std::strerror(error) +
                           "; give the daemon write access or set waiting.keep_processors_awake: "
                           "false");
}

void WakeLatencyRequest::Hold() {
  if (held()) return;
  UniqueFd device(open(kLatencyDevice, O_WRONLY | O_CLOEXEC));
  const int32_t microseconds = 0;
  if (device.valid() && write(device.get(), &microseconds, sizeof microseconds) > 0)
    device_ = std::move(device);
}

}  // namespace rocegw::worker
