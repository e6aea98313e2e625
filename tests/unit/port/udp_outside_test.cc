// SPDX-License-Identifier: Apache-2.0
// The udp port with payloads by reference: the kernel takes them from where they are, mixed with
// packets that hold their payload, alone and in segmented sends. What the kernel refuses for now is
// copied before Flush returns. The kernel's refusals are scripted: this file's sendmmsg stands in
// front of the C library's.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <vector>

#include "gateway/port/udp/udp_port.h"
#include "gateway/wire/crc/icrc.h"
#include "tests/support/network/port_fixture.h"

namespace {

// Steps of the next calls: the most messages to send, or an errno as a negative number.
std::deque<int>& Script() {
  static std::deque<int> script;
  return script;
}

}  // namespace

extern "C" int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  if (!Script().empty()) {
    const int step = Script().front();
    Script().pop_front();
    if (step < 0) {
      errno = -step;
      return -1;
    }
    count = std::min(count, static_cast<unsigned>(step));
  }
  return static_cast<int>(syscall(SYS_sendmmsg, fd, messages, count, flags));
}

namespace rocegw::port::udp_outside {
namespace {

using rocegw::testing::FreeUdpPort;
using rocegw::testing::IsTestPacket;
using rocegw::testing::kTestHeader;
using rocegw::testing::Loopback;
using rocegw::testing::PsnOf;
using rocegw::testing::ReceiveCount;
using rocegw::testing::Received;
using rocegw::testing::WriteTestPacket;

struct Shape {
  size_t payload;
  bool outside;
};

class UdpOutsideTest : public ::testing::TestWithParam<bool> {
 protected:
  void Open(Segmentation segmentation = Segmentation::kOn) {
    auto group = UdpPortGroup::Create({.interfaces = {"lo"},
                                       .udp_port = FreeUdpPort(),
                                       .max_datagram = 4152,
                                       .segmentation = segmentation},
                                      SteeringTable(1));
    ASSERT_TRUE(group.ok()) << group.status().text();
    group_ = std::move(*group);
  }
  void TearDown() override { Script().clear(); }
  UdpPort& port() { return group_->queue(0); }

  // Makes test packets. Those with `outside` have zeros in the place of their payload.
  std::vector<TxPacket*> Make(const std::vector<Shape>& shapes) {
    std::vector<TxPacket*> packets;
    for (const Shape& shape : shapes) {
      TxPacket* packet = port().Acquire();
      packet->path = {.source = Loopback(GetParam()),
                      .destination = Loopback(GetParam()),
                      .source_port = 0xC100,
                      .traffic_class = 2};
      packet->length = static_cast<uint32_t>(
          WriteTestPacket(Qpn{0x12}, next_psn_++, shape.payload, packet->data));
      if (shape.outside) {
        uint8_t* const body = packet->data + kTestHeader;
        memory_.emplace_back(body, body + shape.payload);
        std::fill_n(body, shape.payload, uint8_t{0});
        packet->outside = {memory_.back().data(), kTestHeader,
                           static_cast<uint32_t>(shape.payload)};
      }
      packets.push_back(packet);
    }
    return packets;
  }
  void Scribble() {
    for (std::vector<uint8_t>& bytes : memory_) std::fill(bytes.begin(), bytes.end(), 0xEE);
  }
  void ExpectAll() {
    const std::vector<Received> got = ReceiveCount(port(), next_psn_);
    ASSERT_EQ(got.size(), next_psn_);
    for (uint32_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(PsnOf(got[i].bytes), i);
      EXPECT_TRUE(IsTestPacket(got[i].bytes)) << i;
      uint16_t id = 0;
      EXPECT_TRUE(wire::VerifyIcrc(got[i].meta, got[i].bytes, &id)) << i;
    }
  }

 private:
  std::unique_ptr<UdpPortGroup> group_;
  std::deque<std::vector<uint8_t>> memory_;  // the program's
  uint32_t next_psn_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Families, UdpOutsideTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "IPv4" : "IPv6"; });

TEST_P(UdpOutsideTest, Run_LeavesInOneCall) {
  Open();
  std::vector<Shape> shapes(14, {4096, true});
  shapes.push_back({1000, true});
  ASSERT_EQ(port().Transmit(Make(shapes)), 15u);
  ASSERT_TRUE(port().Flush());
  ExpectAll();
  EXPECT_EQ(port().counters().tx_calls.Read(), 1u);
  EXPECT_EQ(port().counters().tx_segmented.Read(), 15u);
  EXPECT_EQ(port().counters().tx_copied.Read(), 0u);
}

TEST_P(UdpOutsideTest, MixedRun_EachPayloadIsInItsPlace) {
  Open();
  // All patterns of four neighbours.
  std::vector<Shape> shapes;
  for (uint32_t bits = 0; bits < 16; ++bits)
    for (uint32_t i = 0; i < 4; ++i) shapes.push_back({1024, (bits >> i & 1) != 0});
  ASSERT_EQ(port().Transmit(Make(shapes)), shapes.size());
  ASSERT_TRUE(port().Flush());
  ExpectAll();
}

TEST_P(UdpOutsideTest, MixedLengths_KeepOrder) {
  Open();
  ASSERT_EQ(port().Transmit(Make({{4096, true},
                                  {1, true},
                                  {4096, false},
                                  {4096, true},
                                  {3, false},
                                  {2, true},
                                  {2, true},
                                  {2, false},
                                  {0, false},
                                  {1501, true}})),
            10u);
  ASSERT_TRUE(port().Flush());
  ExpectAll();
}

TEST_P(UdpOutsideTest, WithoutSegmentation_EachPacketLeavesAlone) {
  Open(Segmentation::kOff);
  std::vector<Shape> shapes(100, {4096, true});
  for (size_t i = 0; i < shapes.size(); i += 3) shapes[i].outside = false;
  ASSERT_EQ(port().Transmit(Make(shapes)), 100u);
  ASSERT_TRUE(port().Flush());
  ExpectAll();
  EXPECT_EQ(port().counters().tx_segmented.Read(), 0u);
}

TEST_P(UdpOutsideTest, PushBack_PayloadsAreCopiedBeforeTheMemoryChanges) {
  Open();
  const std::vector<TxPacket*> packets = Make({{4096, true}, {4096, false}, {4096, true}});
  Script() = {-EAGAIN};
  ASSERT_EQ(port().Transmit(packets), 3u);
  ASSERT_FALSE(port().Flush());
  for (const TxPacket* packet : packets) EXPECT_FALSE(packet->refers());
  EXPECT_EQ(port().counters().tx_copied.Read(), 2u);
  Scribble();
  ASSERT_TRUE(port().Flush());
  ExpectAll();
}

TEST_P(UdpOutsideTest, PushBackBehindPartOfTheBurst_KeepsTheRest) {
  Open(Segmentation::kOff);
  Script() = {3, -EAGAIN};
  ASSERT_EQ(port().Transmit(Make(std::vector<Shape>(8, {2000, true}))), 8u);
  ASSERT_FALSE(port().Flush());
  EXPECT_EQ(port().counters().tx_copied.Read(), 5u);
  Scribble();
  ASSERT_TRUE(port().Flush());
  ExpectAll();
}

TEST_P(UdpOutsideTest, FullQueue_CopiesNothingUntilFlush) {
  Open();
  // The port tries to send on its own once its queue is full.
  Script() = {-EAGAIN, 64};
  std::vector<TxPacket*> packets = Make(std::vector<Shape>(600, {100, true}));
  const size_t taken = port().Transmit(packets);
  EXPECT_EQ(taken, 512u);
  EXPECT_EQ(port().counters().tx_copied.Read(), 0u);
  ASSERT_TRUE(port().Flush());
  ASSERT_EQ(port().Transmit(std::span(packets).subspan(taken)), packets.size() - taken);
  ASSERT_TRUE(port().Flush());
  ExpectAll();
}

TEST_P(UdpOutsideTest, RefusedSegmentation_SendsTheSamePacketsOneByOne) {
  Open();
  Script() = {-EINVAL};
  ASSERT_EQ(port().Transmit(Make(std::vector<Shape>(5, {1024, true}))), 5u);
  ASSERT_TRUE(port().Flush());
  ExpectAll();
  EXPECT_FALSE(port().segments(GetParam()));
  EXPECT_EQ(port().counters().tx_copied.Read(), 0u);
}

// The kernel finds no memory behind the payload: that packet is lost, and only that.
TEST_P(UdpOutsideTest, Fault_LosesThePacketsOfItsSend) {
  Open(Segmentation::kOff);
  std::vector<TxPacket*> packets = Make({{1024, false}, {1024, true}, {1024, false}});
  Script() = {1, -EFAULT};
  ASSERT_EQ(port().Transmit(packets), 3u);
  ASSERT_TRUE(port().Flush());
  const auto got = ReceiveCount(port(), 2);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(PsnOf(got[0].bytes), 0u);
  EXPECT_EQ(PsnOf(got[1].bytes), 2u);
  EXPECT_EQ(port().counters().tx_lost.Read(), 1u);
}

TEST_P(UdpOutsideTest, ReusedPacket_RefersToNothing) {
  Open();
  TxPacket* const packet = Make({{100, true}})[0];
  port().Release(packet);
  TxPacket* const again = port().Acquire();
  EXPECT_EQ(again, packet);
  EXPECT_FALSE(again->refers());
  EXPECT_EQ(again->outside_from, kOutsideFrom);
}

}  // namespace
}  // namespace rocegw::port::udp_outside
