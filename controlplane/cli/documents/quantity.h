// SPDX-License-Identifier: Apache-2.0
// Amounts as people write them: 16MiB, 10Gbps, 5k, 1h30m, 0660. What an amount counts follows from
// the field's name. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "controlplane/cli/client/call_result.h"

namespace rocegw::cli {

enum class Unit : uint8_t { kCount, kBytes, kBytesPerSecond, kPerSecond, kMode };

Unit UnitOfField(std::string_view field);

// kCount: 5k, 2M, 1G (powers of 1000). kBytes: also KiB..PiB, kB..PB. kBytesPerSecond: bps, kbps..
// Tbps (bits), B/s, MB/s, MiB/s. kPerSecond: as kCount, with or without "/s". kMode: octal digits.
// Fractions where the result is whole ("1.5k"). nullopt: not an amount, or too large.
std::optional<uint64_t> ParseQuantity(std::string_view text, Unit unit);
// What ParseQuantity takes: "a number, or with k, M, G", for messages.
std::string_view QuantityHelp(Unit unit);

// The value of an option, left alone where there is none: more than 0 and at most that much.
CallResult ReadAmount(const std::string& option, const std::string& text, Unit unit, uint64_t most,
                      uint64_t& out);

// Short where nothing is lost: 5k, 16MiB, 10Gbps, 0660.
std::string QuantityText(uint64_t value, Unit unit);

// Milliseconds of "90s", "5m", "1h30m", "250ms"; a bare number is seconds.
std::optional<int64_t> ParseDuration(std::string_view text);

}  // namespace rocegw::cli
