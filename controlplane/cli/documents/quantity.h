// SPDX-License-Identifier: Apache-2.0
// Amounts in the form that users write: 16MiB, 10Gbps, 5k, 1h30m, 0660. The field's name determines
// the unit. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "controlplane/cli/client/call_result.h"

namespace rocegw::cli {

enum class Unit : uint8_t { kCount, kBytes, kBytesPerSecond, kPerSecond, kMode };

Unit UnitOfField(std::string_view field);

// Parses an amount. kCount: 5k, 2M, 1G (powers of 1000). kBytes: also KiB..PiB, kB..PB.
// kBytesPerSecond: bps, kbps.. Tbps (bits), B/s, MB/s, MiB/s. kPerSecond: as kCount, with or
// without "/s". kMode: octal digits. Fractions are valid if the result is whole ("1.5k"). nullopt:
// not an amount, or too large.
std::optional<uint64_t> ParseQuantity(std::string_view text, Unit unit);
// Returns what ParseQuantity accepts, for error texts: "a number, or with k, M, G".
std::string_view QuantityHelp(Unit unit);

// Reads an option's value, more than 0 and at most `most`; leaves `value` unchanged if the text is
// empty.
CallResult ReadAmount(const std::string& option, const std::string& text, Unit unit, uint64_t most,
                      uint64_t& out);

// Returns the shortest exact form: 5k, 16MiB, 10Gbps, 0660.
std::string QuantityText(uint64_t value, Unit unit);

// Returns the milliseconds of "90s", "5m", "1h30m", "250ms"; a number without unit is in seconds.
std::optional<int64_t> ParseDuration(std::string_view text);

// Reads an option's duration in whole seconds. Returns what is wrong, for an error text; empty: the
// value was read.
std::string ReadSeconds(const std::string& option, const std::string& text, uint32_t& seconds);

}  // namespace rocegw::cli
