// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/rings/idle_poller.h"

#include <linux/futex.h>
#include <sched.h>

#include <ctime>

#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/rings/monotonic_time.h"

namespace rocegw::client {
namespace {

// A thread that checks something else between its polls, such as memory that a peer writes, is not
// woken, so sleeps are short.
constexpr long kLongestSleepNs = 200'000;

thread_local IdlePoller this_poller [[gnu::tls_model("initial-exec")]];

}  // namespace

IdlePoller& ThisPoller() { return this_poller; }

void YieldCore(IdlePoller& poller) {
  const int64_t before = MonotonicNs();
  sched_yield();
  poller.OnYield(before, MonotonicNs());
}

void SleepUntilWoken(uint32_t* word, uint32_t value) {
  const timespec limit = {0, kLongestSleepNs};
  RawSyscall(SYS_futex, word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

}  // namespace rocegw::client
