// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/neighbour/neighbour_protocol.h"

#include <algorithm>
#include <cstring>

#include "gateway/port/link_layer.h"
#include "gateway/wire/byte_order.h"

namespace rocegw::port {
namespace {

constexpr MacAddress kBroadcast{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
constexpr size_t kArpLength = 28;
constexpr uint8_t kArpEthernetIpv4[6] = {0, 1, 8,
                                         0, 6, 4};  // hardware and protocol types, address lengths
constexpr uint8_t kArpRequest = 1;
constexpr uint8_t kArpReply = 2;
constexpr size_t kV4Offset = 12;  // offset of an IPv4 address in a GID

constexpr uint8_t kNextHeaderIcmpv6 = 58;
constexpr uint8_t kSolicitation = 135;
constexpr uint8_t kAdvertisement = 136;
constexpr uint8_t kHopLimit = 255;  // proves that the sender is on the link
constexpr uint8_t kSourceLinkAddress = 1;
constexpr uint8_t kTargetLinkAddress = 2;
constexpr uint8_t kSolicited = 0x40;
constexpr uint8_t kOverride = 0x20;
constexpr size_t kDiscoveryLength = 24;  // type to target, without options
constexpr size_t kLinkOptionLength = 8;
constexpr size_t kTargetOffset = 8;

wire::Gid GidOfV4(const uint8_t* bytes) { return wire::Gid::FromV4(wire::LoadBe32(bytes)); }

// The IPv4 address "0.0.0.0" means "none" as "::" does.
wire::Gid NoneIfUnspecified(const wire::Gid& gid) {
  return gid == wire::Gid::FromV4(0) ? wire::Gid{} : gid;
}

MacAddress MacAt(const uint8_t* bytes) {
  MacAddress mac;
  std::copy_n(bytes, mac.size(), mac.begin());
  return mac;
}

std::optional<NeighbourMessage> ParseArp(std::span<const uint8_t> arp) {
  if (arp.size() < kArpLength || std::memcmp(arp.data(), kArpEthernetIpv4, 6) != 0) {
    return std::nullopt;
  }
  const uint16_t operation = wire::LoadBe16(&arp[6]);
  if (operation != kArpRequest && operation != kArpReply) return std::nullopt;
  NeighbourMessage message;
  message.is_request = operation == kArpRequest;
  message.sender_mac = MacAt(&arp[8]);
  message.sender = NoneIfUnspecified(GidOfV4(&arp[14]));
  message.target = message.is_request ? GidOfV4(&arp[24]) : GidOfV4(&arp[14]);
  return message;
}

// Computes the checksum of RFC 4443 section 2.3: over a pseudo header and the ICMPv6 message.
uint16_t Icmpv6Checksum(std::span<const uint8_t> addresses, std::span<const uint8_t> message) {
  uint32_t sum = ChecksumAdd(0, addresses);
  sum += kNextHeaderIcmpv6 + static_cast<uint32_t>(message.size());
  return static_cast<uint16_t>(~ChecksumFold(ChecksumAdd(sum, message)));
}

// Returns the value of a link-layer address option of this type, if present.
std::optional<MacAddress> FindLinkOption(std::span<const uint8_t> options, uint8_t type) {
  while (options.size() >= kLinkOptionLength) {
    const size_t length = size_t{options[1]} * 8;
    if (length == 0 || length > options.size()) return std::nullopt;
    if (options[0] == type) return MacAt(&options[2]);
    options = options.subspan(length);
  }
  return std::nullopt;
}

std::optional<NeighbourMessage> ParseDiscovery(const MacAddress& frame_source,
                                               std::span<const uint8_t> packet) {
  if (packet.size() < kIpv6HeaderLength || packet[0] >> 4 != 6 || packet[6] != kNextHeaderIcmpv6 ||
      packet[7] != kHopLimit) {
    return std::nullopt;
  }
  const size_t length = wire::LoadBe16(&packet[4]);
  if (length < kDiscoveryLength || length > packet.size() - kIpv6HeaderLength) return std::nullopt;
  const auto icmp = packet.subspan(kIpv6HeaderLength, length);
  if ((icmp[0] != kSolicitation && icmp[0] != kAdvertisement) || icmp[1] != 0 ||
      Icmpv6Checksum(packet.subspan(8, 32), icmp) != 0) {
    return std::nullopt;
  }
  NeighbourMessage message;
  message.is_request = icmp[0] == kSolicitation;
  std::copy_n(&icmp[kTargetOffset], 16, message.target.bytes.begin());
  std::copy_n(&packet[8], 16, message.sender.bytes.begin());
  const auto option = FindLinkOption(icmp.subspan(kDiscoveryLength),
                                     message.is_request ? kSourceLinkAddress : kTargetLinkAddress);
  message.sender_mac = option.value_or(frame_source);
  return message;
}

struct ArpFields {
  uint8_t operation;
  const MacAddress& sender_mac;
  const wire::Gid& sender;
  const MacAddress& target_mac;
  const wire::Gid& target;
};

size_t WriteArp(const MacAddress& to, const ArpFields& fields, uint8_t* out) {
  WriteEthernet(to, fields.sender_mac, kEtherTypeArp, out);
  uint8_t* arp = out + kEthernetHeaderLength;
  std::memcpy(arp, kArpEthernetIpv4, sizeof kArpEthernetIpv4);
  wire::StoreBe16(arp + 6, fields.operation);
  std::copy(fields.sender_mac.begin(), fields.sender_mac.end(), arp + 8);
  std::memcpy(arp + 14, fields.sender.bytes.data() + kV4Offset, 4);
  std::copy(fields.target_mac.begin(), fields.target_mac.end(), arp + 18);
  std::memcpy(arp + 24, fields.target.bytes.data() + kV4Offset, 4);
  return kEthernetHeaderLength + kArpLength;
}

struct DiscoveryFields {
  uint8_t type;
  uint8_t flags;
  const wire::Gid& source;
  const wire::Gid& destination;
  const wire::Gid& target;
  const MacAddress& own_mac;
};

size_t WriteDiscovery(const MacAddress& to, const DiscoveryFields& fields, uint8_t* out) {
  constexpr size_t kLength = kDiscoveryLength + kLinkOptionLength;
  WriteEthernet(to, fields.own_mac, kEtherTypeIpv6, out);
  uint8_t* ip = out + kEthernetHeaderLength;
  std::memset(ip, 0, kIpv6HeaderLength + kLength);
  ip[0] = 0x60;
  wire::StoreBe16(ip + 4, kLength);
  ip[6] = kNextHeaderIcmpv6;
  ip[7] = kHopLimit;
  std::memcpy(ip + 8, fields.source.bytes.data(), 16);
  std::memcpy(ip + 24, fields.destination.bytes.data(), 16);
  uint8_t* icmp = ip + kIpv6HeaderLength;
  icmp[0] = fields.type;
  icmp[4] = fields.flags;
  std::memcpy(icmp + kTargetOffset, fields.target.bytes.data(), 16);
  icmp[kDiscoveryLength] = fields.type == kSolicitation ? kSourceLinkAddress : kTargetLinkAddress;
  icmp[kDiscoveryLength + 1] = 1;
  std::copy(fields.own_mac.begin(), fields.own_mac.end(), icmp + kDiscoveryLength + 2);
  wire::StoreBe16(icmp + 2, Icmpv6Checksum({ip + 8, 32}, {icmp, kLength}));
  return kEthernetHeaderLength + kIpv6HeaderLength + kLength;
}

// Returns ff02::1:ffXX:XXXX (RFC 4291 section 2.7.1).
wire::Gid SolicitedNodeGroup(const wire::Gid& target) {
  wire::Gid group;
  group.bytes = {0xFF, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0xFF};
  std::copy_n(target.bytes.begin() + 13, 3, group.bytes.begin() + 13);
  return group;
}

wire::Gid AllNodes() {
  wire::Gid group;
  group.bytes = {0xFF, 0x02};
  group.bytes[15] = 1;
  return group;
}

}  // namespace

bool MulticastMac(const wire::Gid& destination, MacAddress& mac) {
  const auto& bytes = destination.bytes;
  if (!destination.IsMulticast()) return false;
  if (destination.IsV4()) {
    mac = {0x01, 0x00, 0x5E, static_cast<uint8_t>(bytes[13] & 0x7F), bytes[14], bytes[15]};
    return true;
  }
  mac = {0x33, 0x33, bytes[12], bytes[13], bytes[14], bytes[15]};
  return true;
}

std::optional<NeighbourMessage> ParseNeighbourMessage(std::span<const uint8_t> frame) {
  uint16_t ether_type = 0;
  std::span<const uint8_t> network;
  if (!ParseEthernet(frame, ether_type, network)) return std::nullopt;
  std::optional<NeighbourMessage> message;
  if (ether_type == kEtherTypeArp) message = ParseArp(network);
  if (ether_type == kEtherTypeIpv6) message = ParseDiscovery(MacAt(&frame[6]), network);
  // A group MAC address belongs to no host.
  if (message && (message->sender_mac[0] & 1) != 0) return std::nullopt;
  return message;
}

size_t WriteNeighbourRequest(const wire::Gid& source, const MacAddress& source_mac,
                             const wire::Gid& target, uint8_t* out) {
  if (target.IsV4()) {
    return WriteArp(kBroadcast, {kArpRequest, source_mac, source, MacAddress{}, target}, out);
  }
  const wire::Gid group = SolicitedNodeGroup(target);
  MacAddress to{};
  (void)MulticastMac(group, to);
  return WriteDiscovery(to, {kSolicitation, 0, source, group, target, source_mac}, out);
}

size_t WriteNeighbourAnswer(const wire::Gid& target, const MacAddress& target_mac,
                            const wire::Gid& asker, const MacAddress& asker_mac, uint8_t* out) {
  if (target.IsV4()) {
    return WriteArp(asker_mac, {kArpReply, target_mac, target, asker_mac, asker}, out);
  }
  if (asker.IsZero()) {
    // A host checks if the address is free: all hosts must receive the answer.
    MacAddress everybody{};
    (void)MulticastMac(AllNodes(), everybody);
    return WriteDiscovery(everybody,
                          {kAdvertisement, kOverride, target, AllNodes(), target, target_mac}, out);
  }
  return WriteDiscovery(
      asker_mac, {kAdvertisement, kSolicited | kOverride, target, asker, target, target_mac}, out);
}

size_t WriteNeighbourAnnouncement(const wire::Gid& target, const MacAddress& target_mac,
                                  uint8_t* out) {
  if (target.IsV4()) {
    return WriteArp(kBroadcast, {kArpRequest, target_mac, target, MacAddress{}, target}, out);
  }
  MacAddress everybody{};
  (void)MulticastMac(AllNodes(), everybody);
  return WriteDiscovery(everybody,
                        {kAdvertisement, kOverride, target, AllNodes(), target, target_mac}, out);
}

}  // namespace rocegw::port
