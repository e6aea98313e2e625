// SPDX-License-Identifier: Apache-2.0
// What a port lets pass while strangers send more than the gateway can answer: shares of datagrams
// by kind and source address, decided before anything else is done with a datagram. A worker
// computes the filter (worker/receive/flood_guard.h); a port applies it, in the kernel where it can
// (udp/flood_program.h). Values without an owner; no thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gateway/wire/codec.h"
#include "gateway/wire/gid.h"

namespace rocegw::port {

// Kinds of datagrams that are limited apart, so that a flood of one does not stop another.
enum class FloodKind : uint8_t {
  kConnection,  // MADs that are not discovery: the connection manager's
  kDiscovery,   // MADs of a vendor class: questions and answers between gateways
  kOther,       // for any other queue pair
};
inline constexpr size_t kFloodKinds = 3;

// Place of a MAD's management class in the UDP payload.
inline constexpr size_t kMadClassAt = wire::kBthLength + wire::kDethLength + 1;

// `datagram`: UDP payload, BTH first, of any length.
FloodKind KindOf(std::span<const uint8_t> datagram);

// Share of datagrams: those pass whose random number is not greater.
using PassShare = uint32_t;
inline constexpr PassShare kAllPass = UINT32_MAX;

struct FloodFilter {
  static constexpr size_t kBuckets = 32;
  // A bucket is what this shift leaves of a word of 32 bits.
  static constexpr int kBucketShift = 27;
  // Limit of known sources; one of IPv6 counts as four, as in the program.
  static constexpr size_t kMostKnown = 256;

  // Odd and secret, so that a stranger cannot choose an address of another one's bucket.
  uint32_t multiplier = 1;
  std::array<PassShare, kFloodKinds> of_known{kAllPass, kAllPass, kAllPass};
  // Shares of all other sources, by the bucket of their address.
  std::array<std::array<PassShare, kBuckets>, kFloodKinds> of_strangers;

  FloodFilter() {
    for (auto& shares : of_strangers) shares.fill(kAllPass);
  }

  // Adds a source of which only MADs are limited, if there is room.
  void Know(const wire::Gid& source);
  std::span<const wire::Gid> known() const { return known_; }
  size_t BucketOf(const wire::Gid& source) const;
  bool IsKnown(const wire::Gid& source) const;
  // Returns true if every datagram passes.
  bool empty() const;
  PassShare ShareOf(const wire::Gid& source, FloodKind kind) const;
  // `random`: 32 bits, new for each datagram.
  bool Passes(const wire::Gid& source, std::span<const uint8_t> datagram, uint32_t random) const {
    return random <= ShareOf(source, KindOf(datagram));
  }

 private:
  std::vector<wire::Gid> known_;  // sorted: a port without a kernel filter looks for each datagram
  size_t room_ = kMostKnown;
};

}  // namespace rocegw::port
