// SPDX-License-Identifier: Apache-2.0
// CLOCK_MONOTONIC as a TimePoint, for the threads of the daemons. The protocol core does not
// include this file: it is handed the time. Any thread.
#pragma once

#include <ctime>

#include "gateway/base/time.h"

namespace rocegw {

inline TimePoint MonotonicNow() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return {int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec};
}

}  // namespace rocegw
