// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/frame.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gateway/wire/byte_order.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/headers.h"
#include "tests/support/network/port_fixture.h"

namespace rocegw::port {
namespace {

std::vector<uint8_t> FromHex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// Congestion notification recorded from a ConnectX-4 Lx (part of scapy's regression tests).
const char kRecordedCnp[] =
    "e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201000012b7002800008100ffff40"
    "00"
    "0118000000000000000000000000000000000000000082fd002a";
// UC SEND Only with a non-zero UDP checksum (same source).
const char kRecordedSend[] =
    "248a07a8fa22248a07a8fa22080045010040047840004011b4d5c0a80007c0a80007c00012b7002caca22460ffff00"
    "00"
    "00d300cf17104630818be28935d90e9a95505401be885e50000078f353f3";

struct Outcome {
  FrameVerdict verdict = FrameVerdict::kMalformed;
  ParsedFrame frame;
};

Outcome Parse(std::span<const uint8_t> bytes) {
  Outcome outcome;
  uint16_t ether_type = 0;
  std::span<const uint8_t> network;
  if (ParseEthernet(bytes, ether_type, network)) {
    outcome.verdict = ParseIpUdp(ether_type, network, outcome.frame);
  }
  return outcome;
}

TEST(Frame_Parse, RecordedFramesOfAnRnic) {
  const auto bytes = FromHex(kRecordedCnp);
  const Outcome cnp = Parse(bytes);
  ASSERT_EQ(cnp.verdict, FrameVerdict::kRoce);
  EXPECT_EQ(cnp.frame.meta.source, wire::Gid::FromV4(0x0A001101));
  EXPECT_EQ(cnp.frame.meta.destination, wire::Gid::FromV4(0x0A001201));
  EXPECT_EQ(cnp.frame.meta.source_port, 0);
  EXPECT_EQ(cnp.frame.meta.traffic_class, 0xC2);
  EXPECT_EQ(cnp.frame.meta.hop_limit, 64);
  EXPECT_TRUE(cnp.frame.meta.ip_id_known);
  EXPECT_EQ(cnp.frame.meta.ip_id, 0x718C);
  EXPECT_EQ(cnp.frame.payload.size(), 32U);
  uint16_t id = cnp.frame.meta.ip_id;
  EXPECT_TRUE(wire::VerifyIcrc(cnp.frame.meta, cnp.frame.payload, &id));
  const auto send_bytes = FromHex(kRecordedSend);
  const Outcome send = Parse(send_bytes);
  ASSERT_EQ(send.verdict, FrameVerdict::kRoce);
  EXPECT_EQ(send.frame.meta.source_port, 0xC000);
  id = send.frame.meta.ip_id;
  EXPECT_TRUE(wire::VerifyIcrc(send.frame.meta, send.frame.payload, &id));
}

TEST(Frame_UdpChecksum, MatchesARecordedOne) {
  const auto bytes = FromHex(kRecordedSend);
  const wire::Path path{.source = wire::Gid::FromV4(0xC0A80007),
                        .destination = wire::Gid::FromV4(0xC0A80007)};
  std::vector<uint8_t> udp(bytes.begin() + 34, bytes.end());
  const uint16_t recorded = static_cast<uint16_t>(udp[6] << 8 | udp[7]);
  udp[6] = udp[7] = 0;
  EXPECT_EQ(UdpChecksum(path, std::span(udp).first(8), std::span(udp).subspan(8)), recorded);
}

TEST(Frame_Parse, EthernetPaddingAndOneVlanTagAreFine) {
  auto bytes = FromHex(kRecordedCnp);
  bytes.insert(bytes.begin() + 12, {0x81, 0x00, 0x00, 0x07});
  bytes.resize(bytes.size() + 20);
  const Outcome outcome = Parse(bytes);
  ASSERT_EQ(outcome.verdict, FrameVerdict::kRoce);
  EXPECT_EQ(outcome.frame.payload.size(), 32U);
}

TEST(Frame_Parse, EveryTruncationIsRefused) {
  const auto bytes = FromHex(kRecordedCnp);
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::vector<uint8_t> shorter(bytes.begin(),
                                       bytes.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_NE(Parse(shorter).verdict, FrameVerdict::kRoce) << length;
  }
}

TEST(Frame_Parse, OtherTrafficIsTold) {
  auto bytes = FromHex(kRecordedCnp);
  bytes[36] = 0x00;  // destination port
  EXPECT_EQ(Parse(bytes).verdict, FrameVerdict::kOther);
  bytes = FromHex(kRecordedCnp);
  bytes[12] = 0x08;
  bytes[13] = 0x06;
  EXPECT_EQ(Parse(bytes).verdict, FrameVerdict::kOther);
  bytes = FromHex(kRecordedCnp);
  bytes[23] = 6;  // TCP
  EXPECT_EQ(Parse(bytes).verdict, FrameVerdict::kOther);
}

// Changes one IPv4 header field and repairs the header checksum.
std::vector<uint8_t> WithIpv4Field(size_t offset, uint8_t value) {
  auto bytes = FromHex(kRecordedCnp);
  bytes[kEthernetHeaderLength + offset] = value;
  uint8_t* ip = &bytes[kEthernetHeaderLength];
  ip[10] = ip[11] = 0;
  const auto sum = static_cast<uint16_t>(~ChecksumFold(ChecksumAdd(0, {ip, kIpv4HeaderLength})));
  ip[10] = static_cast<uint8_t>(sum >> 8);
  ip[11] = static_cast<uint8_t>(sum);
  return bytes;
}

TEST(Frame_Parse, BadIpv4HeadersAreMalformed) {
  EXPECT_EQ(Parse(WithIpv4Field(8, 64)).verdict, FrameVerdict::kRoce);
  EXPECT_EQ(Parse(WithIpv4Field(0, 0x55)).verdict, FrameVerdict::kMalformed) << "version 5";
  EXPECT_EQ(Parse(WithIpv4Field(0, 0x44)).verdict, FrameVerdict::kMalformed) << "short header";
  EXPECT_EQ(Parse(WithIpv4Field(0, 0x46)).verdict, FrameVerdict::kMalformed) << "options";
  EXPECT_EQ(Parse(WithIpv4Field(6, 0x20)).verdict, FrameVerdict::kMalformed) << "more fragments";
  EXPECT_EQ(Parse(WithIpv4Field(7, 0x08)).verdict, FrameVerdict::kMalformed) << "later fragment";
  EXPECT_EQ(Parse(WithIpv4Field(3, 0x10)).verdict, FrameVerdict::kMalformed) << "total length";
  auto bytes = FromHex(kRecordedCnp);
  bytes[kEthernetHeaderLength + 10] ^= 1;
  EXPECT_EQ(Parse(bytes).verdict, FrameVerdict::kMalformed) << "header checksum";
  bytes = FromHex(kRecordedCnp);
  bytes[kEthernetHeaderLength + kIpv4HeaderLength + 5] = 7;
  EXPECT_EQ(Parse(bytes).verdict, FrameVerdict::kMalformed) << "UDP length below its header";
  bytes[kEthernetHeaderLength + kIpv4HeaderLength + 5] = 0x29;
  EXPECT_EQ(Parse(bytes).verdict, FrameVerdict::kMalformed) << "UDP length beyond the packet";
}

void ExpectRoundTrip(const wire::Path& path, uint16_t ip_id) {
  std::vector<uint8_t> bytes(kMaxIpUdpLength + 200);
  const size_t headers = IpUdpLength(path.destination);
  uint8_t* payload = bytes.data() + headers;
  const size_t length = rocegw::testing::WriteTestPacket(Qpn{5}, 9, 40, payload);
  wire::SealIcrc(path, ip_id, payload, length);
  ASSERT_EQ(WriteIpUdp(path, ip_id, length + wire::kIcrcLength, bytes.data()), headers);
  ParsedFrame frame;
  const uint16_t type = path.destination.IsV4() ? kEtherTypeIpv4 : kEtherTypeIpv6;
  ASSERT_EQ(ParseIpUdp(type, bytes, frame), FrameVerdict::kRoce);
  EXPECT_EQ(frame.meta.source, path.source);
  EXPECT_EQ(frame.meta.destination, path.destination);
  EXPECT_EQ(frame.meta.source_port, path.source_port);
  EXPECT_EQ(frame.meta.traffic_class, path.traffic_class);
  EXPECT_EQ(frame.meta.hop_limit, path.hop_limit);
  EXPECT_EQ(frame.meta.ip_id_known, path.destination.IsV4());
  EXPECT_EQ(frame.payload.size(), length + wire::kIcrcLength);
  uint16_t id = frame.meta.ip_id;
  EXPECT_TRUE(wire::VerifyIcrc(frame.meta, frame.payload, &id));
}

TEST(Frame_Write, ParsesBackWithAGoodIcrc) {
  ExpectRoundTrip(rocegw::testing::TestPath(), 0xBEEF);
  wire::Path path = rocegw::testing::TestPath();
  path.source = {};
  path.destination = {};
  path.source.bytes = {0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  path.destination.bytes = {0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
  ExpectRoundTrip(path, 0);
}

TEST(Frame_Vlan, TagsAreWrittenAndRead) {
  std::array<uint8_t, kEthernetHeaderLength + kVlanTagLength> frame{};
  WriteEthernet({1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1}, kEtherTypeIpv4, frame.data());
  EXPECT_EQ(VlanOf(frame), 0);
  WriteVlanTag(0xABC, frame.data() + 12);
  wire::StoreBe16(frame.data() + 16, kEtherTypeIpv6);
  EXPECT_EQ(VlanOf(frame), 0xABC);
  frame[14] |= 0xE0;
  EXPECT_EQ(VlanOf(frame), 0xABC) << "the priority is no part of it";
  uint16_t ether_type = 0;
  std::span<const uint8_t> network;
  ASSERT_TRUE(ParseEthernet(frame, ether_type, network));
  EXPECT_EQ(ether_type, kEtherTypeIpv6);
  EXPECT_EQ(VlanOf(std::span(frame).first(17)), 0) << "cut off";
}

}  // namespace
}  // namespace rocegw::port
