// SPDX-License-Identifier: Apache-2.0
// IP and UDP headers around a datagram, for ports that write frames themselves (DPDK) and for
// captures. RFC 791, RFC 8200, RFC 768; IPv4 without options and with DF, as RoCEv2 needs. Parsing
// checks every length of foreign input; a refusal has a reason. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gateway/wire/datagram.h"

namespace rocegw::port {

inline constexpr size_t kEthernetHeaderLength = 14;
inline constexpr size_t kVlanTagLength = 4;
inline constexpr uint16_t kVlanMask = 0x0FFF;  // bits of a tag; the rest is priority
inline constexpr size_t kIpv4HeaderLength = 20;
inline constexpr size_t kIpv6HeaderLength = 40;
inline constexpr size_t kUdpHeaderLength = 8;
inline constexpr size_t kMinIpUdpLength = kIpv4HeaderLength + kUdpHeaderLength;
inline constexpr size_t kMaxIpUdpLength = kIpv6HeaderLength + kUdpHeaderLength;

inline constexpr uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr uint16_t kEtherTypeArp = 0x0806;
inline constexpr uint16_t kEtherTypeVlan = 0x8100;
inline constexpr uint16_t kEtherTypeIpv6 = 0x86DD;

using MacAddress = std::array<uint8_t, 6>;

// Returns the UDP payload that fits behind an IPv4 header on an interface whose MTU counts the IP
// header; 0 if none fits.
constexpr size_t MaxDatagram(size_t mtu) {
  return mtu > kMaxIpUdpLength ? mtu - kMinIpUdpLength : 0;
}

inline size_t IpUdpLength(const wire::Gid& destination) {
  return (destination.IsV4() ? kIpv4HeaderLength : kIpv6HeaderLength) + kUdpHeaderLength;
}

void WriteEthernet(const MacAddress& destination, const MacAddress& source, uint16_t ether_type,
                   uint8_t* out);

// Returns the bytes in front of the IP header of a frame in that VLAN (IEEE 802.1Q); 0: no VLAN, no
// tag.
constexpr size_t EthernetLength(uint16_t vlan) {
  return kEthernetHeaderLength + (vlan != 0 ? kVlanTagLength : 0);
}
// Writes the tag between addresses and EtherType.
void WriteVlanTag(uint16_t vlan, uint8_t* tag);

// Writes IP and UDP headers for payload_length bytes (ICRC included) at `out`, with UDP checksum 0,
// and returns their length. ip_id is ignored for IPv6.
size_t WriteIpUdp(const wire::Path& path, uint16_t ip_id, size_t payload_length, uint8_t* out);

// Returns the checksum of a UDP packet (RFC 768: never 0) whose header WriteIpUdp wrote, with
// checksum field 0.
uint16_t UdpChecksum(const wire::Path& path, std::span<const uint8_t> udp_header,
                     std::span<const uint8_t> payload);

enum class FrameVerdict : uint8_t {
  kRoce,       // UDP packet to port 4791; meta and payload are set
  kOther,      // any other packet
  kMalformed,  // wrong IP or UDP length, a fragment, or a wrong IP header checksum
};

struct ParsedFrame {
  wire::RxMeta meta;
  std::span<const uint8_t> payload;
};

// Parses from the IP header on; ignores Ethernet padding behind the IP packet.
[[nodiscard]] FrameVerdict ParseIpUdp(uint16_t ether_type, std::span<const uint8_t> packet,
                                      ParsedFrame& out);

// Parses from the Ethernet header on, with at most one VLAN tag. Sets ether_type and network (the
// bytes behind the Ethernet header). Returns false if the frame is too short.
[[nodiscard]] bool ParseEthernet(std::span<const uint8_t> frame, uint16_t& ether_type,
                                 std::span<const uint8_t>& network);

// Returns the VLAN of a frame's tag; 0: no tag, or one with a priority only.
uint16_t VlanOf(std::span<const uint8_t> frame);

// Adds to an Internet checksum (RFC 1071), folded to 16 bits and not yet complemented; `sum` chains
// calls on even lengths.
uint32_t ChecksumAdd(uint32_t sum, std::span<const uint8_t> bytes);
uint16_t ChecksumFold(uint32_t sum);

}  // namespace rocegw::port
