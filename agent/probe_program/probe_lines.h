// SPDX-License-Identifier: Apache-2.0
// What rocegw-probe writes to its standard output, a line each, and the agent reads: where it
// waits, what it measured, or why it failed. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace rocegw::probe {

enum class Fault : uint8_t {
  kAttachRefused,
  kNoAddress,
  kUnreachable,
  kConnectionRefused,
  kTimedOut,
  kConnectionLost,
  kCorrupted,
  kFailed,
};

struct Listening {
  std::string address;  // "192.0.2.1"
  uint16_t port = 0;
  bool operator==(const Listening&) const = default;
};

// Times in nanoseconds.
struct Measured {
  uint32_t qpn = 0;
  uint64_t connect_ns = 0;
  uint32_t round_trips = 0;
  uint64_t min_ns = 0;
  uint64_t median_ns = 0;
  uint64_t p99_ns = 0;
  uint64_t bulk_bytes = 0;
  uint64_t bulk_bytes_per_second = 0;
  bool operator==(const Measured&) const = default;
};

struct Failed {
  Fault fault = Fault::kFailed;
  std::string message;  // one line
  bool operator==(const Failed&) const = default;
};

using Line = std::variant<Listening, Measured, Failed>;

// With its line feed.
std::string TextOf(const Line& line);
// Without one. Nothing: the probe says no such thing.
std::optional<Line> ReadLine(std::string_view text);

}  // namespace rocegw::probe
