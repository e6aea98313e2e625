// SPDX-License-Identifier: Apache-2.0
// Encoding and decoding of ARP (RFC 826) and IPv6 neighbour discovery frames (RFC 4861:
// solicitation and advertisement). Foreign input is checked here once. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "gateway/port/frame.h"
#include "gateway/wire/gid.h"

namespace rocegw::port {

// Message of either protocol: its sender, and the address that it concerns.
struct NeighbourMessage {
  bool is_request = false;
  wire::Gid sender;  // zero: the sender has no address yet (duplicate detection)
  MacAddress sender_mac{};
  wire::Gid target;  // requests: the address to resolve; answers: the resolved address
};

// Parses the message in an Ethernet frame. Nothing if it is another frame or violates the rules
// (for IPv6: hop limit 255, checksum, code 0).
std::optional<NeighbourMessage> ParseNeighbourMessage(std::span<const uint8_t> frame);

inline constexpr size_t kMaxNeighbourFrame = 86;

// Writes "who has target?" to all hosts and returns the frame's length. Both addresses have the
// same family.
size_t WriteNeighbourRequest(const wire::Gid& source, const MacAddress& source_mac,
                             const wire::Gid& target, uint8_t* out);

// Writes "target is at target_mac" to one asker.
size_t WriteNeighbourAnswer(const wire::Gid& target, const MacAddress& target_mac,
                            const wire::Gid& asker, const MacAddress& asker_mac, uint8_t* out);

// Writes the same, unasked, to all hosts: for a port that starts.
size_t WriteNeighbourAnnouncement(const wire::Gid& target, const MacAddress& target_mac,
                                  uint8_t* out);

}  // namespace rocegw::port
