// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/schedule/cycle_clock.h"

#include <time.h>

#include "gateway/base/timing/monotonic_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace rocegw::worker {
namespace {

int64_t Monotonic() { return MonotonicNow().ns; }

#if defined(__x86_64__)
constexpr int kShift = 24;
uint64_t ns_per_cycle = 0;  // scaled by 2^kShift

int64_t Cycles() {
  return static_cast<int64_t>(static_cast<unsigned __int128>(__rdtsc()) * ns_per_cycle >> kShift);
}

bool InvariantTsc() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0;
}

void Calibrate() {
  constexpr int64_t kFor = 5'000'000;
  const int64_t from = MonotonicNow().ns;
  const uint64_t first = __rdtsc();
  int64_t now = from;
  while (now - from < kFor) now = MonotonicNow().ns;
  const uint64_t cycles = __rdtsc() - first;
  ns_per_cycle = (static_cast<uint64_t>(now - from) << kShift) / cycles;
}
#endif

}  // namespace

CycleClock FindCycleClock() {
#if defined(__x86_64__)
  static const CycleClock found = [] {
    if (!InvariantTsc()) return &Monotonic;
    Calibrate();
    return ns_per_cycle == 0 ? &Monotonic : &Cycles;
  }();
  return found;
#else
  return &Monotonic;
#endif
}

int64_t ThreadProcessorTime() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace rocegw::worker
