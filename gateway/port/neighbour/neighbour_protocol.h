// SPDX-License-Identifier: Apache-2.0
// Frames of ARP (RFC 826) and of IPv6 neighbour discovery (RFC 4861: solicitation and
// advertisement) to values and back. Foreign bytes are checked here once. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "gateway/port/frame.h"
#include "gateway/wire/gid.h"

namespace rocegw::port {

// Both protocols say the same: who is asking or answering, and about which address.
struct NeighbourMessage {
  bool is_request = false;
  wire::Gid sender;  // zero: the sender has no address yet (duplicate detection)
  MacAddress sender_mac{};
  wire::Gid target;  // requests: whose MAC is wanted; answers: whose MAC it is
};

// The message in an Ethernet frame; nothing when it is another frame or does not follow the rules
// (for IPv6: hop limit 255, checksum, code 0).
std::optional<NeighbourMessage> ParseNeighbourMessage(std::span<const uint8_t> frame);

inline constexpr size_t kMaxNeighbourFrame = 86;

// "Who has target?" to everybody; returns the frame's length. Both addresses of one family.
size_t WriteNeighbourRequest(const wire::Gid& source, const MacAddress& source_mac,
                             const wire::Gid& target, uint8_t* out);

// "target is at target_mac", to one who asked.
size_t WriteNeighbourAnswer(const wire::Gid& target, const MacAddress& target_mac,
                            const wire::Gid& asker, const MacAddress& asker_mac, uint8_t* out);

// The same, unasked, to everybody: for a port that starts.
size_t WriteNeighbourAnnouncement(const wire::Gid& target, const MacAddress& target_mac,
                                  uint8_t* out);

}  // namespace rocegw::port
