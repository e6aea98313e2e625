// SPDX-License-Identifier: Apache-2.0
// CLOCK_MONOTONIC as one number. Any thread.
#pragma once

#include <cstdint>
#include <ctime>

namespace rocegw::client {

inline int64_t MonotonicNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace rocegw::client
