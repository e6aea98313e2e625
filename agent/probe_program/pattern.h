// SPDX-License-Identifier: Apache-2.0
// The bytes that probes send each other, so that a message that is another one, or an old one, is
// told from the right one: both ends have one table of bytes that look random, and a message is the
// part of it that begins where its number says. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocegw::probe {

inline constexpr uint32_t kLongestMessage = 65536;
inline constexpr size_t kPatternBytes = 2 * size_t{kLongestMessage};

enum class Direction : uint8_t { kThere, kBack };

void FillPattern(uint8_t* table);
// Where message `number` begins in the table.
uint32_t PatternOffset(Direction direction, uint64_t number);

}  // namespace rocegw::probe
