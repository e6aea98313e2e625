// SPDX-License-Identifier: Apache-2.0
// Time and number of a worker's current iteration, which its parts share. The worker writes it at
// the beginning of an iteration.
#pragma once

#include <cstdint>

#include "gateway/base/time.h"

namespace rocegw::worker {

struct Round {
  TimePoint now;
  uint32_t iteration = 0;
};

}  // namespace rocegw::worker
