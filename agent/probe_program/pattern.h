// SPDX-License-Identifier: Apache-2.0
// Test pattern of probes, by which wrong or old messages are detected: both ends have one table of
// pseudo-random bytes, and a message is the part of it that begins at a position derived from its
// number. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocegw::probe {

inline constexpr uint32_t kLongestMessage = 65536;
inline constexpr size_t kPatternBytes = 2 * size_t{kLongestMessage};

enum class Direction : uint8_t { kThere, kBack };

void FillPattern(uint8_t* table);
// Returns the position of message `number` in the table.
uint32_t PatternOffset(Direction direction, uint64_t number);

}  // namespace rocegw::probe
