// SPDX-License-Identifier: Apache-2.0
// Output of rocegw-probe, one line each, which the agent reads: its listening address, its results,
// or its error. Pure; any thread.
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

// Network beside RDMA: datagrams of the kernel with DSCP and ECN, round trips and bulk over TCP.
struct PlainPath {
  uint32_t sent = 0;  // datagrams
  uint32_t received = 0;
  uint32_t reordered = 0;  // received after a later datagram
  uint32_t dscp_kept = 0;
  uint32_t ecn_kept = 0;
  uint32_t ecn_marked = 0;  // "congestion experienced"
  uint64_t tcp_median_ns = 0;
  uint64_t tcp_bytes_per_second = 0;
  // The other end's clock minus the own one; not set: not measured.
  std::optional<int64_t> clock_ahead_ns;
  std::string problem;  // why a part was not measured, one line
  bool operator==(const PlainPath&) const = default;
};

struct Failed {
  Fault fault = Fault::kFailed;
  std::string message;  // text of one line
  bool operator==(const Failed&) const = default;
};

using Line = std::variant<Listening, PlainPath, Measured, Failed>;

// Returns the text with its line feed.
std::string TextOf(const Line& line);
// Parses a line without line feed. Returns nothing for an unknown line.
std::optional<Line> ReadLine(std::string_view text);

}  // namespace rocegw::probe
