// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/frame.h"

#include <cstring>

#include "gateway/wire/byte_order.h"

namespace rocegw::port {
namespace {

constexpr uint8_t kProtocolUdp = 17;
constexpr uint16_t kDontFragment = 0x4000;
constexpr uint16_t kMoreFragmentsOrOffset = 0x3FFF;
constexpr size_t kGidV4Offset = 12;

void Put16(uint8_t* out, size_t value) { wire::StoreBe16(out, static_cast<uint16_t>(value)); }

void WriteIpv4(const wire::Path& path, uint16_t ip_id, size_t udp_length, uint8_t* out) {
  out[0] = 0x45;
  out[1] = path.traffic_class;
  Put16(out + 2, kIpv4HeaderLength + udp_length);
  Put16(out + 4, ip_id);
  Put16(out + 6, kDontFragment);
  out[8] = path.hop_limit;
  out[9] = kProtocolUdp;
  Put16(out + 10, 0);
  std::memcpy(out + 12, path.source.bytes.data() + kGidV4Offset, 4);
  std::memcpy(out + 16, path.destination.bytes.data() + kGidV4Offset, 4);
  const uint16_t checksum = ChecksumFold(ChecksumAdd(0, {out, kIpv4HeaderLength}));
  Put16(out + 10, static_cast<uint16_t>(~checksum));
}

void WriteIpv6(const wire::Path& path, size_t udp_length, uint8_t* out) {
  Put16(out, 0x6000U | static_cast<unsigned>(path.traffic_class) << 4);
  Put16(out + 2, 0);
  Put16(out + 4, udp_length);
  out[6] = kProtocolUdp;
  out[7] = path.hop_limit;
  std::memcpy(out + 8, path.source.bytes.data(), 16);
  std::memcpy(out + 24, path.destination.bytes.data(), 16);
}

// Fills in addresses, traffic class and hop limit, and returns the UDP packet in `udp`.
FrameVerdict ParseIpv4(std::span<const uint8_t> packet, ParsedFrame& out,
                       std::span<const uint8_t>& udp) {
  if (packet.size() < kIpv4HeaderLength || packet[0] >> 4 != 4) return FrameVerdict::kMalformed;
  const size_t header = size_t{packet[0]} % 16 * 4;
  const size_t total = wire::LoadBe16(&packet[2]);
  if (header < kIpv4HeaderLength || total < header || total > packet.size()) {
    return FrameVerdict::kMalformed;
  }
  if (packet[9] != kProtocolUdp) return FrameVerdict::kOther;
  if (ChecksumFold(ChecksumAdd(0, packet.first(header))) != 0xFFFF) {
    return FrameVerdict::kMalformed;
  }
  // Options change what the ICRC covers and no RoCEv2 sender uses them; fragments cannot be
  // checked.
  if (header != kIpv4HeaderLength || (wire::LoadBe16(&packet[6]) & kMoreFragmentsOrOffset) != 0) {
    return FrameVerdict::kMalformed;
  }
  out.meta.traffic_class = packet[1];
  out.meta.ip_id = wire::LoadBe16(&packet[4]);
  out.meta.ip_id_known = true;
  out.meta.hop_limit = packet[8];
  out.meta.source = wire::Gid::FromV4(0);
  out.meta.destination = out.meta.source;
  std::memcpy(out.meta.source.bytes.data() + kGidV4Offset, &packet[12], 4);
  std::memcpy(out.meta.destination.bytes.data() + kGidV4Offset, &packet[16], 4);
  udp = packet.first(total).subspan(header);
  return FrameVerdict::kRoce;
}

FrameVerdict ParseIpv6(std::span<const uint8_t> packet, ParsedFrame& out,
                       std::span<const uint8_t>& udp) {
  if (packet.size() < kIpv6HeaderLength || packet[0] >> 4 != 6) return FrameVerdict::kMalformed;
  const size_t length = wire::LoadBe16(&packet[4]);
  if (length > packet.size() - kIpv6HeaderLength) return FrameVerdict::kMalformed;
  if (packet[6] != kProtocolUdp) return FrameVerdict::kOther;
  out.meta.traffic_class = static_cast<uint8_t>(wire::LoadBe16(&packet[0]) >> 4);
  out.meta.ip_id = 0;
  out.meta.ip_id_known = false;
  out.meta.hop_limit = packet[7];
  std::memcpy(out.meta.source.bytes.data(), &packet[8], 16);
  std::memcpy(out.meta.destination.bytes.data(), &packet[24], 16);
  udp = packet.subspan(kIpv6HeaderLength, length);
  return FrameVerdict::kRoce;
}

}  // namespace

uint32_t ChecksumAdd(uint32_t sum, std::span<const uint8_t> bytes) {
  uint64_t wide = sum;
  size_t i = 0;
  for (; i + 1 < bytes.size(); i += 2) wide += wire::LoadBe16(&bytes[i]);
  if (i < bytes.size()) wide += static_cast<uint64_t>(bytes[i]) << 8;
  while (wide >> 32 != 0) wide = (wide & 0xFFFFFFFF) + (wide >> 32);
  return static_cast<uint32_t>(wide);
}

uint16_t ChecksumFold(uint32_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

void WriteEthernet(const MacAddress& destination, const MacAddress& source, uint16_t ether_type,
                   uint8_t* out) {
  std::memcpy(out, destination.data(), 6);
  std::memcpy(out + 6, source.data(), 6);
  Put16(out + 12, ether_type);
}

size_t WriteIpUdp(const wire::Path& path, uint16_t ip_id, size_t payload_length, uint8_t* out) {
  const size_t udp_length = kUdpHeaderLength + payload_length;
  uint8_t* udp = out;
  if (path.destination.IsV4()) {
    WriteIpv4(path, ip_id, udp_length, out);
    udp += kIpv4HeaderLength;
  } else {
    WriteIpv6(path, udp_length, out);
    udp += kIpv6HeaderLength;
  }
  Put16(udp, path.source_port);
  Put16(udp + 2, wire::kRocePort);
  Put16(udp + 4, udp_length);
  Put16(udp + 6, 0);
  return IpUdpLength(path.destination);
}

uint16_t UdpChecksum(const wire::Path& path, std::span<const uint8_t> udp_header,
                     std::span<const uint8_t> payload) {
  const size_t offset = path.destination.IsV4() ? kGidV4Offset : 0;
  uint32_t sum = ChecksumAdd(0, std::span(path.source.bytes).subspan(offset));
  sum = ChecksumAdd(sum, std::span(path.destination.bytes).subspan(offset));
  sum += kProtocolUdp + static_cast<uint32_t>(udp_header.size() + payload.size());
  sum = ChecksumAdd(ChecksumAdd(sum, udp_header), payload);
  const auto checksum = static_cast<uint16_t>(~ChecksumFold(sum));
  return checksum == 0 ? 0xFFFF : checksum;
}

FrameVerdict ParseIpUdp(uint16_t ether_type, std::span<const uint8_t> packet, ParsedFrame& out) {
  std::span<const uint8_t> udp;
  FrameVerdict verdict = FrameVerdict::kOther;
  if (ether_type == kEtherTypeIpv4) {
    verdict = ParseIpv4(packet, out, udp);
  } else if (ether_type == kEtherTypeIpv6) {
    verdict = ParseIpv6(packet, out, udp);
  }
  if (verdict != FrameVerdict::kRoce) return verdict;
  if (udp.size() < kUdpHeaderLength) return FrameVerdict::kMalformed;
  if (wire::LoadBe16(&udp[2]) != wire::kRocePort) return FrameVerdict::kOther;
  // UDP's length counts: some senders leave bytes behind it.
  const size_t length = wire::LoadBe16(&udp[4]);
  if (length < kUdpHeaderLength || length > udp.size()) return FrameVerdict::kMalformed;
  out.meta.source_port = wire::LoadBe16(&udp[0]);
  out.payload = udp.first(length).subspan(kUdpHeaderLength);
  return FrameVerdict::kRoce;
}

void WriteVlanTag(uint16_t vlan, uint8_t* tag) {
  wire::StoreBe16(tag, kEtherTypeVlan);
  wire::StoreBe16(tag + 2, vlan);
}

uint16_t VlanOf(std::span<const uint8_t> frame) {
  if (frame.size() < kEthernetHeaderLength + kVlanTagLength ||
      wire::LoadBe16(&frame[kEthernetHeaderLength - 2]) != kEtherTypeVlan)
    return 0;
  return wire::LoadBe16(&frame[kEthernetHeaderLength]) & kVlanMask;
}

bool ParseEthernet(std::span<const uint8_t> frame, uint16_t& ether_type,
                   std::span<const uint8_t>& network) {
  if (frame.size() < kEthernetHeaderLength) return false;
  ether_type = wire::LoadBe16(&frame[12]);
  network = frame.subspan(kEthernetHeaderLength);
  if (ether_type == kEtherTypeVlan) {
    if (network.size() < kVlanTagLength) return false;
    ether_type = wire::LoadBe16(&network[2]);
    network = network.subspan(kVlanTagLength);
  }
  return true;
}

}  // namespace rocegw::port
