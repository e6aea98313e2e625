// SPDX-License-Identifier: Apache-2.0
// IP and UDP headers around a datagram, for ports that write frames themselves (DPDK) and for
// captures. RFC 791, RFC 8200, RFC 768; IPv4 without options and with DF, as RoCEv2 needs.
// Parsing takes foreign bytes: every length is checked, a refusal says why. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gateway/wire/datagram.h"

namespace rocegw::port {

inline constexpr size_t kEthernetHeaderLength = 14;
inline constexpr size_t kVlanTagLength = 4;
inline constexpr uint16_t kVlanMask = 0x0FFF;  // of a tag; the rest is priority
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

// UDP payload that fits an interface whose MTU counts the IP header, behind an IPv4 header; 0 when
// the MTU is too small for anything.
constexpr size_t MaxDatagram(size_t mtu) {
  return mtu > kMaxIpUdpLength ? mtu - kMinIpUdpLength : 0;
}

inline size_t IpUdpLength(const wire::Gid& destination) {
  return (destination.IsV4() ? kIpv4HeaderLength : kIpv6HeaderLength) + kUdpHeaderLength;
}

void WriteEthernet(const MacAddress& destination, const MacAddress& source, uint16_t ether_type,
                   uint8_t* out);

// Bytes in front of the IP header of a frame in that VLAN (IEEE 802.1Q); 0: in none, without a tag.
constexpr size_t EthernetLength(uint16_t vlan) {
  return kEthernetHeaderLength + (vlan != 0 ? kVlanTagLength : 0);
}
// Puts a tag between the addresses and the EtherType of a frame, which end and begin at `tag`'s two
// ends.
void WriteVlanTag(uint16_t vlan, uint8_t* tag);

// Writes IP and UDP headers for payload_length bytes (ICRC included) at `out`, with UDP checksum 0;
// returns their length. ip_id is ignored for IPv6.
size_t WriteIpUdp(const wire::Path& path, uint16_t ip_id, size_t payload_length, uint8_t* out);

// The checksum of a UDP packet (RFC 768: never 0) whose header WriteIpUdp wrote, checksum field 0.
uint16_t UdpChecksum(const wire::Path& path, std::span<const uint8_t> udp_header,
                     std::span<const uint8_t> payload);

enum class FrameVerdict : uint8_t {
  kRoce,       // a UDP packet to port 4791; meta and payload are set
  kOther,      // something else
  kMalformed,  // IP or UDP lengths do not fit, a fragment, or a wrong IP header checksum
};

struct ParsedFrame {
  wire::RxMeta meta;
  std::span<const uint8_t> payload;
};

// From the IP header on; Ethernet padding behind the IP packet is ignored.
[[nodiscard]] FrameVerdict ParseIpUdp(uint16_t ether_type, std::span<const uint8_t> packet,
                                      ParsedFrame& out);

// From the Ethernet header on, with at most one VLAN tag. Sets ether_type and network (the bytes
// behind the Ethernet header) for every frame that has one; false when it is too short.
[[nodiscard]] bool ParseEthernet(std::span<const uint8_t> frame, uint16_t& ether_type,
                                 std::span<const uint8_t>& network);

// The VLAN that a frame's own tag names; 0: no tag, or one that gives a priority alone.
uint16_t VlanOf(std::span<const uint8_t> frame);

// Internet checksum (RFC 1071) folded to 16 bits, not yet complemented; `sum` chains calls on even
// lengths.
uint32_t ChecksumAdd(uint32_t sum, std::span<const uint8_t> bytes);
uint16_t ChecksumFold(uint32_t sum);

}  // namespace rocegw::port
