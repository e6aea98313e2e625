// SPDX-License-Identifier: Apache-2.0
#include "agent/probe_program/pattern.h"

#include <cstring>

#include "gateway/base/mix.h"

namespace rocegw::probe {

void FillPattern(uint8_t* table) {
  for (size_t i = 0; i < kPatternBytes; i += sizeof(uint64_t)) {
    const uint64_t word = Mix(i + 1);
    std::memcpy(table + i, &word, sizeof word);
  }
}

uint32_t PatternOffset(Direction direction, uint64_t number) {
  // Odd, so that all values occur before one repeats.
  constexpr uint64_t kStep = 4099;
  const uint64_t first = direction == Direction::kThere ? 0 : kLongestMessage / 2 + 1;
  return static_cast<uint32_t>((first + number * kStep) % kLongestMessage);
}

}  // namespace rocegw::probe
