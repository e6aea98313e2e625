// SPDX-License-Identifier: Apache-2.0
// Nanoseconds for measuring pieces of work, at a third of the cost of clock_gettime: the
// processor's cycle counter where it runs at one speed whatever the core does (x86 with an
// invariant TSC), else CLOCK_MONOTONIC. Only differences mean something, and only to a thousandth
// or so. Any thread.
#pragma once

#include <cstdint>

namespace rocegw::worker {

// Takes some milliseconds, once for the process.
using CycleClock = int64_t (*)();
CycleClock FindCycleClock();

}  // namespace rocegw::worker
