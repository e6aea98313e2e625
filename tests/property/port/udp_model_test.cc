// SPDX-License-Identifier: Apache-2.0
// The udp port over the loopback interface, compared with a list: any mix of lengths and paths
// arrives per path in order, byte for byte. Also the rules for segmented sends.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <map>
#include <random>
#include <vector>

#include "gateway/port/udp/udp_port.h"
#include "gateway/port/udp/udp_socket.h"
#include "gateway/port/udp/udp_transmitter.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/headers.h"
#include "tests/support/network/port_fixture.h"

namespace rocegw::port {
namespace {

using rocegw::testing::FreeUdpPort;
using rocegw::testing::IsTestPacket;
using rocegw::testing::Loopback;
using rocegw::testing::PsnOf;
using rocegw::testing::ReceiveCount;
using rocegw::testing::Received;
using rocegw::testing::WriteTestPacket;

class SegmentRunModel : public ::testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, SegmentRunModel, ::testing::Range<uint64_t>(1, 51));

// The kernel's rules, written independently of the code that finds the longest run.
bool MayLeaveTogether(std::span<TxPacket* const> run) {
  size_t total = 0;
  for (size_t i = 0; i < run.size(); ++i) {
    total += run[i]->length + wire::kIcrcLength;
    const bool last = i + 1 == run.size();
    if (last ? run[i]->length > run[0]->length : run[i]->length != run[0]->length) return false;
    if (run[i]->path.source_port != run[0]->path.source_port) return false;
  }
  return run.size() <= kMaxSegments && total <= kMaxUdpPayload;
}

TEST_P(SegmentRunModel, IsTheLongestThatTheKernelTakes) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  std::mt19937_64 random(GetParam());
  const std::vector<uint32_t> lengths{12, 16, 300, 1040, 4112};
  std::vector<TxPacket> packets(200);
  uint32_t length = 12;
  uint16_t source_port = 0xC000;
  std::vector<TxPacket*> pointers;
  for (TxPacket& packet : packets) {
    if (random() % 8 == 0) length = lengths[random() % lengths.size()];
    if (random() % 40 == 0) source_port = static_cast<uint16_t>(0xC000 + random() % 3);
    packet.length = length;
    packet.path.source_port = source_port;
    pointers.push_back(&packet);
  }
  for (size_t start = 0; start < pointers.size();) {
    const auto rest = std::span<TxPacket* const>(pointers).subspan(start);
    const size_t run = SegmentRun(rest);
    ASSERT_GE(run, 1U);
    ASSERT_TRUE(run == 1 || MayLeaveTogether(rest.first(run)));
    if (run < rest.size()) {
      EXPECT_FALSE(MayLeaveTogether(rest.first(run + 1))) << "at " << start;
    }
    start += run;
  }
}

class UdpModel : public ::testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, UdpModel, ::testing::Range<uint64_t>(1, 13));

TEST_P(UdpModel, WhatGoesInComesOutInOrderPerPath) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  std::mt19937_64 random(GetParam());
  auto group = UdpPortGroup::Create(
      {.interfaces = {"lo"},
       .udp_port = FreeUdpPort(),
       .max_datagram = 4152,
       .segmentation = random() % 3 == 0 ? Segmentation::kOff : Segmentation::kOn,
       .receive_buffers = random() % 8 + 1,
       .source_ports_per_queue = random() % 4 + 1},
      SteeringTable(1));
  ASSERT_TRUE(group.ok()) << group.status().text();
  UdpPort& port = (*group)->queue(0);
  std::map<uint16_t, std::vector<uint32_t>> sent;  // PSNs by source port
  std::map<uint16_t, std::vector<uint32_t>> got;
  uint32_t psn = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<TxPacket*> packets;
    size_t payload = random() % 4097;
    auto source_port = static_cast<uint16_t>(0xC400 + random() % 6);
    bool ipv4 = true;
    for (size_t i = 0; i < 40; ++i) {
      if (random() % 6 == 0) payload = random() % 4097;
      if (random() % 10 == 0) {
        source_port = static_cast<uint16_t>(0xC400 + random() % 6);
        // A path belongs to one address family.
        ipv4 = source_port % 2 == 0;
      }
      ipv4 = source_port % 2 == 0;
      TxPacket* packet = port.Acquire();
      ASSERT_NE(packet, nullptr);
      packet->path = {.source = Loopback(ipv4),
                      .destination = Loopback(ipv4),
                      .source_port = source_port,
                      .traffic_class = static_cast<uint8_t>(source_port % 6 * 4)};
      packet->length =
          static_cast<uint32_t>(WriteTestPacket(Qpn{0x12}, psn, payload, packet->data));
      sent[source_port].push_back(psn++);
      packets.push_back(packet);
    }
    size_t taken = 0;
    while (taken < packets.size()) taken += port.Transmit(std::span(packets).subspan(taken));
    while (!port.Flush()) {
    }
    for (const Received& one : ReceiveCount(port, packets.size())) {
      EXPECT_TRUE(IsTestPacket(one.bytes));
      EXPECT_EQ(one.meta.traffic_class, one.meta.source_port % 6 * 4);
      uint16_t id = 0;
      EXPECT_TRUE(wire::VerifyIcrc(one.meta, one.bytes, &id));
      got[one.meta.source_port].push_back(PsnOf(one.bytes));
    }
  }
  EXPECT_EQ(got, sent);
  EXPECT_EQ(port.counters().tx_lost.Read(), 0U);
}

}  // namespace
}  // namespace rocegw::port
