// SPDX-License-Identifier: Apache-2.0
#include "tests/support/steps.h"

namespace {
thread_local uint64_t steps = 0;
}  // namespace

// Called by instrumented code at the beginning of each basic block.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" void __sanitizer_cov_trace_pc() { ++steps; }

namespace rocegw::testing {

uint64_t Steps() { return steps; }

}  // namespace rocegw::testing
