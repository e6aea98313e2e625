// SPDX-License-Identifier: Apache-2.0
#include "gateway/wire/describe/describe.h"

#include <gtest/gtest.h>

#include "tests/support/golden_frames.h"

namespace rocegw::wire {
namespace {

using testing::Parse;

std::string DescribeGolden(const testing::GoldenFrame& frame) {
  const testing::ParsedFrame parsed = Parse(frame);
  return Describe(parsed.Rx());
}

TEST(Describe, GoldenFrames_AreOneLineEach) {
  EXPECT_EQ(DescribeGolden(testing::kHardwareCnpFrame),
            "10.0.17.1>10.0.18.1 CNP qp=0x000118 psn=0 becn");
  EXPECT_EQ(DescribeGolden(testing::kUcSendOnlyFrame),
            "192.168.0.7>192.168.0.7 UC SEND Only qp=0x0000d3 psn=13571856 payload=18");
  EXPECT_EQ(DescribeGolden(testing::kRcSendOnlyFrame),
            "192.0.2.1>192.0.2.2 RC SEND Only qp=0x000011 psn=11259375 ack payload=13");
  EXPECT_EQ(DescribeGolden(testing::kIpv6WriteOnlyFrame),
            "2001:db8::1>2001:db8::2 RC WRITE Only qp=0x000011 psn=1 ack va=0x7f0011223344 "
            "rkey=0x12345 len=8 payload=8");
  EXPECT_EQ(DescribeGolden(testing::kRcAckFrame),
            "192.0.2.2>192.0.2.1 RC ACK qp=0x000012 psn=11259375 syndrome=0x1f msn=1");
  EXPECT_EQ(DescribeGolden(testing::kCmRequestFrame),
            "192.0.2.1>192.0.2.2 UD SEND Only qp=0x000001 psn=0 from=0x000001 qkey=0x80010000 "
            "payload=256");
}

TEST(Describe, Syndromes_AreNamed) {
  RxPacket packet;
  packet.headers.bth.opcode = Opcode::kRcAck;
  const auto text = [&packet](uint8_t syndrome) {
    packet.headers.aeth.syndrome = syndrome;
    const std::string line = Describe(packet);
    return line.substr(line.find("psn=0 ") + 6);
  };
  EXPECT_EQ(text(0x60), "nak=psn-sequence msn=0");
  EXPECT_EQ(text(0x61), "nak=invalid-request msn=0");
  EXPECT_EQ(text(0x62), "nak=remote-access msn=0");
  EXPECT_EQ(text(0x63), "nak=remote-operation msn=0");
  EXPECT_EQ(text(0x64), "nak=invalid-rd-request msn=0");
  EXPECT_EQ(text(0x7F), "syndrome=0x7f msn=0");
  EXPECT_EQ(text(0x2E), "rnr timer=14 msn=0");
  EXPECT_EQ(text(0x45), "syndrome=0x45 msn=0");
}

TEST(Describe, DroppedDatagram_NamesTheReason) {
  testing::ParsedFrame frame = Parse(testing::kRcAckFrame);
  frame.datagram.back() ^= 1;
  EXPECT_EQ(Describe(frame.Rx()),
            "192.0.2.2>192.0.2.1 RC ACK qp=0x000012 psn=11259375 20 bytes dropped: bad_icrc");
  frame.datagram[0] = 0x15;
  EXPECT_EQ(Describe(frame.Rx()),
            "192.0.2.2>192.0.2.1 opcode=0x15 qp=0x000012 psn=11259375 20 bytes dropped: "
            "unknown_opcode");
  frame.datagram.resize(3);
  EXPECT_EQ(Describe(frame.Rx()), "192.0.2.2>192.0.2.1 3 bytes dropped: truncated");
}

TEST(ToString, Gid_IsAnAddress) {
  EXPECT_EQ(ToString(Gid::FromV4(0xC0000201)), "192.0.2.1");
  EXPECT_EQ(ToString(Gid{}), "::");
}

}  // namespace
}  // namespace rocegw::wire
