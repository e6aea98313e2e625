// SPDX-License-Identifier: Apache-2.0
// Clock in nanoseconds for measuring pieces of work, at a third of the cost of clock_gettime. It
// uses the cycle counter if that has a constant rate (x86 with an invariant TSC), else
// CLOCK_MONOTONIC. Only differences are meaningful, to about a thousandth. Any thread.
#pragma once

#include <cstdint>

namespace rocegw::worker {

// Returns the clock. The first call takes some milliseconds; once per process.
using CycleClock = int64_t (*)();
CycleClock FindCycleClock();

// Returns the processor time of the calling thread in nanoseconds; a system call.
int64_t ThreadProcessorTime();

}  // namespace rocegw::worker
