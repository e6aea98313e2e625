// SPDX-License-Identifier: Apache-2.0
// What the kernel says of a thread after the worker's requests. Real-time threads and the latency
// device need privileges, without which the errors must name the remedy.
#include "gateway/worker/schedule/thread_scheduling.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <future>
#include <string>
#include <thread>

namespace rocegw::worker {
namespace {

// Slice of the calling thread; 0 where the kernel has none.
uint64_t SliceNs() {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
  } attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return 0;
  return attributes.runtime_ns;
}

TEST(ThreadScheduling, Slice_IsThatOfTheThreadAlone) {
  const uint64_t before = SliceNs();
  uint64_t inside = 0;
  std::thread([&] {
    RequestSlice(Microseconds(100));
    inside = SliceNs();
  }).join();
  // Linux before 6.12 has no slices and ignores the request.
  EXPECT_EQ(inside, before == 0 ? 0u : 100'000u);
  EXPECT_EQ(SliceNs(), before);
}

TEST(ThreadScheduling, SliceOfZero_LeavesTheKernels) {
  uint64_t before = 0;
  uint64_t after = 0;
  int slack = 0;
  std::thread([&] {
    before = SliceNs();
    RequestSlice(Duration{});
    after = SliceNs();
    slack = prctl(PR_GET_TIMERSLACK);
  }).join();
  EXPECT_EQ(after, before);
  EXPECT_EQ(slack, 1000) << "timers expire on time whatever the slice is";
}

TEST(ThreadScheduling, Realtime_IsSetOrItsErrorNamesTheRemedy) {
  std::promise<void> looked;
  std::thread thread([&] { looked.get_future().wait(); });
  const Status status = MakeRealtime(thread.native_handle(), 7);
  int policy = 0;
  sched_param parameters{};
  EXPECT_EQ(pthread_getschedparam(thread.native_handle(), &policy, &parameters), 0);
  looked.set_value();
  thread.join();
  if (status.ok()) {
    EXPECT_EQ(policy, SCHED_FIFO);
    EXPECT_EQ(parameters.sched_priority, 7);
  } else {
    EXPECT_EQ(policy, SCHED_OTHER);
    EXPECT_NE(status.text().find("CAP_SYS_NICE"), std::string::npos) << status.text();
  }
}

TEST(WakeLatencyRequest, HoldAndRelease_FollowEachOther) {
  const Status status = WakeLatencyRequest::Check();
  WakeLatencyRequest request;
  request.Hold();
  EXPECT_EQ(request.held(), status.ok());
  if (!status.ok()) {
    EXPECT_NE(status.text().find("keep_processors_awake"), std::string::npos);
  }
  request.Release();
  EXPECT_FALSE(request.held());
}

}  // namespace
}  // namespace rocegw::worker
