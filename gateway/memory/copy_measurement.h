// SPDX-License-Identifier: Apache-2.0
// Measurement that decides which copies a copy engine makes: bursts of copies by the processor and
// by the engine. Takes some milliseconds, once at start.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/memory/copy_engine.h"

namespace rocegw::memory {

struct CopyTimes {
  uint32_t bytes = 0;
  // Time of one copy in a burst, from the first descriptor to the last completion.
  Duration by_processor;
  Duration by_engine;
};

// Lengths that are measured, which are those of RoCEv2's payloads.
inline constexpr uint32_t kMeasuredBytes[] = {512, 1024, 2048, 4096};

// Measures a queue that is idle; one thread at a time. If any copy failed, did not end or brought
// other bytes, all times by the engine are kCopyLost, and the engine must not be used.
std::vector<CopyTimes> MeasureCopies(CopyQueue& queue);

// Returns the shortest length from which on the engine is faster; 0: it never is. `times`:
// ascending by length.
uint32_t ShortestWorthwhile(std::span<const CopyTimes> times);

}  // namespace rocegw::memory
