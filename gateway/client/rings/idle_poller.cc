// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/rings/idle_poller.h"

#include <linux/futex.h>
#include <sched.h>

#include <cstdlib>
#include <cstring>
#include <ctime>

#include "gateway/client/process/environment.h"
#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/rings/monotonic_time.h"

namespace rocegw::client {
namespace {

// A thread that checks something else between its polls, such as memory that a peer writes, is not
// woken, so sleeps are short.
constexpr long kLongestSleepNs = 200'000;

constinit thread_local IdlePoller this_poller [[gnu::tls_model("initial-exec")]];

constexpr uint32_t kEmptyPolls = 64;
constexpr long kMostEmptyPolls = 1'000'000;
// If polling threads may outnumber cores, a poller that finds nothing delays the worker it waits
// for: on two cores four spinning threads wait milliseconds for each other, yielding ones
// microseconds.
constexpr int kFewProcessors = 4;

bool Is(const char* text, const char* value) { return text != nullptr && strcmp(text, value) == 0; }

uint32_t ReadEmptyPolls(const char* text) {
  if (text == nullptr) return kEmptyPolls;
  char* end;
  const long number = strtol(text, &end, 10);
  const bool valid = end != text && *end == '\0' && number >= 1 && number <= kMostEmptyPolls;
  return valid ? static_cast<uint32_t>(number) : kEmptyPolls;
}

}  // namespace

Polling ChoosePolling(const char* mode, const char* empty_polls, const char* yield,
                      int processors) {
  const uint32_t polls = ReadEmptyPolls(empty_polls);
  if (Is(mode, "busy")) return {};
  if (Is(mode, "event")) return {WaitMode::kEventBatch, 1};
  if (Is(mode, "hybrid")) return {WaitMode::kHybrid, polls};
  if (Is(mode, "adaptive") || Is(yield, "on")) return {WaitMode::kAdaptive, polls};
  if (Is(yield, "off") || processors > kFewProcessors) return {};
  return {WaitMode::kAdaptive, polls};
}

Polling PollingFromEnvironment() {
  cpu_set_t allowed;
  const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  return ChoosePolling(Setting("ROCEGW_POLL"), Setting("ROCEGW_POLL_EMPTY"),
                       Setting("ROCEGW_POLL_YIELD"), known ? CPU_COUNT(&allowed) : 1);
}

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
