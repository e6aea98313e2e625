// SPDX-License-Identifier: Apache-2.0
// Counts the steps of the code under test: the basic blocks that it runs. A test of what something
// costs compares steps, which do not depend on the machine or its load. Sources are compiled with
// -fsanitize-coverage=trace-pc for it (tests/unit/steps); calls into libc and libstdc++ are no
// steps.
#pragma once

#include <cstdint>

namespace rocegw::testing {

// Returns the steps of this thread so far.
uint64_t Steps();

template <typename F>
uint64_t StepsOf(F action) {
  const uint64_t before = Steps();
  action();
  return Steps() - before;
}

}  // namespace rocegw::testing
