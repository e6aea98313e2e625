// SPDX-License-Identifier: Apache-2.0
// The udp port mode over the loopback interface, without privileges.
#include "gateway/port/udp/udp_port.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "gateway/port/udp/udp_socket.h"
#include "gateway/wire/crc/icrc.h"
#include "tests/support/network/port_fixture.h"

namespace rocegw::port::udp_port {
namespace {

using rocegw::testing::FreeUdpPort;
using rocegw::testing::IsTestPacket;
using rocegw::testing::Loopback;
using rocegw::testing::PsnOf;
using rocegw::testing::ReceiveAll;
using rocegw::testing::ReceiveCount;
using rocegw::testing::Received;
using rocegw::testing::SendTestPacket;
using rocegw::testing::WriteTestPacket;

constexpr Qpn kQpn{0x12};

wire::Path LoopbackPath(bool ipv4, uint16_t source_port = 0xC100) {
  return {.source = Loopback(ipv4),
          .destination = Loopback(ipv4),
          .source_port = source_port,
          .traffic_class = 0x6A,
          .hop_limit = 33};
}

UdpPortConfig LoopbackConfig() {
  return {.interfaces = {"lo"}, .udp_port = FreeUdpPort(), .max_datagram = 4152};
}

std::unique_ptr<UdpPortGroup> MakeGroup(const UdpPortConfig& config, size_t workers = 1) {
  auto group = UdpPortGroup::Create(config, SteeringTable(workers));
  EXPECT_TRUE(group.ok()) << group.status().text();
  return group.ok() ? std::move(*group) : nullptr;
}

std::vector<TxPacket*> Acquire(PacketPort& port, const wire::Path& path, uint32_t first_psn,
                               const std::vector<size_t>& payloads, Qpn qpn = kQpn) {
  std::vector<TxPacket*> packets;
  for (const size_t payload : payloads) {
    TxPacket* packet = port.Acquire();
    packet->path = path;
    packet->length =
        static_cast<uint32_t>(WriteTestPacket(qpn, first_psn++, payload, packet->data));
    packets.push_back(packet);
  }
  return packets;
}

void ExpectInOrder(const std::vector<Received>& got, size_t count) {
  ASSERT_EQ(got.size(), count);
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT_EQ(PsnOf(got[i].bytes), i);
    EXPECT_TRUE(IsTestPacket(got[i].bytes)) << i;
  }
}

class UdpPortTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Families, UdpPortTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "IPv4" : "IPv6"; });

TEST_P(UdpPortTest, SinglePacket_ArrivesWithItsMetadata) {
  const auto group = MakeGroup(LoopbackConfig());
  ASSERT_NE(group, nullptr);
  UdpPort& port = group->queue(0);
  ASSERT_TRUE(SendTestPacket(port, LoopbackPath(GetParam()), kQpn, 0, 100));
  const auto got = ReceiveCount(port, 1);
  ExpectInOrder(got, 1);
  const wire::RxMeta& meta = got[0].meta;
  EXPECT_EQ(meta.source, Loopback(GetParam()));
  EXPECT_EQ(meta.destination, Loopback(GetParam()));
  EXPECT_EQ(meta.source_port, 0xC100);
  EXPECT_EQ(meta.traffic_class, 0x6A);
  EXPECT_EQ(meta.hop_limit, 33);
  EXPECT_FALSE(meta.ip_id_known);
  uint16_t id = 0xFFFF;
  EXPECT_TRUE(wire::VerifyIcrc(meta, got[0].bytes, &id));
  if (GetParam()) {
    EXPECT_EQ(id, 0);
  }
  EXPECT_EQ(port.counters().tx_calls.Read(), 1U);
  EXPECT_EQ(port.counters().tx_segmented.Read(), 0U);
}

TEST_P(UdpPortTest, Run_LeavesInOneCallAndArrivesMergedAndWhole) {
  const auto group = MakeGroup(LoopbackConfig());
  ASSERT_NE(group, nullptr);
  UdpPort& port = group->queue(0);
  ASSERT_TRUE(port.segments(GetParam()));
  std::vector<size_t> payloads(14, 4096);
  payloads.push_back(1000);
  const auto packets = Acquire(port, LoopbackPath(GetParam()), 0, payloads);
  ASSERT_EQ(port.Transmit(packets), 15U);
  ASSERT_TRUE(port.Flush());
  const auto got = ReceiveCount(port, 15);
  ExpectInOrder(got, 15);
  EXPECT_EQ(port.counters().tx_calls.Read(), 1U);
  EXPECT_EQ(port.counters().tx_segmented.Read(), 15U);
  EXPECT_EQ(port.counters().rx_merged.Read(), 15U);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].meta.traffic_class, 0x6A);
    uint16_t id = 0;
    EXPECT_TRUE(wire::VerifyIcrc(got[i].meta, got[i].bytes, &id));
    if (GetParam()) {
      EXPECT_EQ(id, i) << "segment k carries IPv4 ID k";
    }
  }
}

TEST_P(UdpPortTest, MixedTraffic_KeepsOrderPerPath) {
  const auto group = MakeGroup(LoopbackConfig());
  ASSERT_NE(group, nullptr);
  UdpPort& port = group->queue(0);
  const std::vector<size_t> payloads{4096, 4096, 12, 4096, 0, 0, 4096, 8, 16, 16, 4096};
  const auto packets = Acquire(port, LoopbackPath(GetParam()), 0, payloads);
  ASSERT_EQ(port.Transmit(packets), payloads.size());
  ASSERT_TRUE(port.Flush());
  const auto got = ReceiveCount(port, payloads.size());
  ExpectInOrder(got, payloads.size());
  for (const Received& received : got) {
    uint16_t id = 0;
    EXPECT_TRUE(wire::VerifyIcrc(received.meta, received.bytes, &id));
  }
}

TEST_P(UdpPortTest, SegmentationOff_SendsEachPacketAlone) {
  UdpPortConfig config = LoopbackConfig();
  config.segmentation = Segmentation::kOff;
  const auto group = MakeGroup(config);
  ASSERT_NE(group, nullptr);
  UdpPort& port = group->queue(0);
  const auto packets = Acquire(port, LoopbackPath(GetParam()), 0, std::vector<size_t>(100, 4096));
  ASSERT_EQ(port.Transmit(packets), 100U);
  ASSERT_TRUE(port.Flush());
  const auto got = ReceiveCount(port, 100);
  ExpectInOrder(got, 100);
  for (const Received& received : got) {
    uint16_t id = 1;
    EXPECT_TRUE(wire::VerifyIcrc(received.meta, received.bytes, &id));
    if (GetParam()) {
      EXPECT_EQ(id, 0);
    }
  }
  EXPECT_EQ(port.counters().tx_segmented.Read(), 0U);
}

TEST_P(UdpPortTest, TwoQueues_TheKernelSteersByBucket) {
  const auto group = MakeGroup(LoopbackConfig(), 2);
  ASSERT_NE(group, nullptr);
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const Qpn qpn{bucket << kBucketShift | 3};
    wire::Path path = LoopbackPath(GetParam(), SourcePort(1, qpn));
    const auto packets = Acquire(group->queue(0), path, bucket, {64, 64, 64}, qpn);
    ASSERT_EQ(group->queue(0).Transmit(packets), 3U);
    ASSERT_TRUE(group->queue(0).Flush());
  }
  for (size_t queue = 0; queue < 2; ++queue) {
    const auto got = ReceiveCount(group->queue(queue), 96);
    EXPECT_EQ(got.size(), 96U);
    for (const Received& received : got) EXPECT_EQ((received.bytes[5] >> 2) % 2U, queue);
  }
}

TEST_P(UdpPortTest, ManySourcePorts_StayWithinTheBoundAndAllArrive) {
  UdpPortConfig config = LoopbackConfig();
  config.source_ports_per_queue = 4;
  const auto group = MakeGroup(config);
  ASSERT_NE(group, nullptr);
  std::set<uint16_t> seen;
  for (uint32_t i = 0; i < 20; ++i) {
    const auto source = static_cast<uint16_t>(0xC200 + i);
    ASSERT_TRUE(SendTestPacket(group->queue(0), LoopbackPath(GetParam(), source), kQpn, i, 8));
    for (const Received& received : ReceiveCount(group->queue(0), 1)) {
      seen.insert(received.meta.source_port);
      uint16_t id = 0;
      EXPECT_TRUE(wire::VerifyIcrc(received.meta, received.bytes, &id));
    }
  }
  EXPECT_EQ(seen.size(), 20U);
  EXPECT_EQ(group->queue(0).counters().tx_source_ports.Read(), 20U);
}

TEST_P(UdpPortTest, SourcePortHeldByAnother_MovesOnWithinItsBucket) {
  const int family = GetParam() ? AF_INET : AF_INET6;
  const UniqueFd holder(socket(family, SOCK_DGRAM, 0));
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(0xC300);
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_port = htons(0xC300);
  // Bound by the test or another program: after this the port is in use.
  (void)bind(holder.get(),
             GetParam() ? reinterpret_cast<sockaddr*>(&any4) : reinterpret_cast<sockaddr*>(&any6),
             GetParam() ? sizeof any4 : sizeof any6);
  const auto group = MakeGroup(LoopbackConfig());
  ASSERT_NE(group, nullptr);
  ASSERT_TRUE(SendTestPacket(group->queue(0), LoopbackPath(GetParam(), 0xC300), kQpn, 0, 8));
  const auto got = ReceiveCount(group->queue(0), 1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_NE(got[0].meta.source_port, 0xC300);
  EXPECT_EQ(got[0].meta.source_port % kBuckets, 0xC300 % kBuckets);
  uint16_t id = 0;
  EXPECT_TRUE(wire::VerifyIcrc(got[0].meta, got[0].bytes, &id));
}

TEST_P(UdpPortTest, SourcePortOfTheService_NeverTakesItsPackets) {
  UdpPortConfig config = LoopbackConfig();
  const auto group = MakeGroup(config);
  ASSERT_NE(group, nullptr);
  const wire::Path path = LoopbackPath(GetParam(), config.udp_port);
  for (uint32_t psn = 0; psn < 4; ++psn) {
    ASSERT_TRUE(SendTestPacket(group->queue(0), path, kQpn, psn, 8));
  }
  ExpectInOrder(ReceiveCount(group->queue(0), 4), 4);
}

// Packets of another program of this host, from an address of this host.
TEST_P(UdpPortTest, LoopbackOfAnotherProgram_IsRefusedAndTheOwnArrives) {
  UdpPortConfig config = LoopbackConfig();
  const uint16_t sent_to = config.udp_port;
  config.refuse_foreign_loopback = true;
  const auto group = MakeGroup(config);
  ASSERT_NE(group, nullptr);
  UdpPort& port = group->queue(0);
  // A transmitter outside of the group is like any other program.
  PortCounters counters;
  UdpTransmitter stranger(
      {.packets = 8, .limits = port.limits(), .udp_port = sent_to, .source_ports = 8}, counters);
  for (const uint16_t source_port : {0xC105, 0xF007}) {
    TxPacket* packet = stranger.Acquire();
    packet->path = LoopbackPath(GetParam(), source_port);
    packet->length = static_cast<uint32_t>(WriteTestPacket(kQpn, 77, 64, packet->data));
    ASSERT_EQ(stranger.Transmit(std::span(&packet, 1)), 1U);
    ASSERT_TRUE(stranger.Flush());
  }
  for (uint32_t psn = 0; psn < 3; ++psn)
    ASSERT_TRUE(SendTestPacket(port, LoopbackPath(GetParam(), 0xC100), kQpn, psn, 8));
  ExpectInOrder(ReceiveCount(port, 3), 3);
  EXPECT_EQ(port.counters().rx_foreign_loopback.Read(), 2U);
}

TEST_P(UdpPortTest, ForeignSource_IsCountedAndBlocksNobody) {
  const auto group = MakeGroup(LoopbackConfig());
  ASSERT_NE(group, nullptr);
  UdpPort& port = group->queue(0);
  // From an address of the documentation ranges, which this host does not own.
  wire::Path bad = LoopbackPath(GetParam());
  bad.source = wire::Gid::FromV4(0xC0000263);
  if (!GetParam()) {
    bad.source.bytes = {0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
  }
  auto packets = Acquire(port, bad, 100, {64, 64, 64});
  for (TxPacket* good : Acquire(port, LoopbackPath(GetParam()), 0, {64, 64})) {
    packets.push_back(good);
  }
  ASSERT_EQ(port.Transmit(packets), 5U);
  EXPECT_TRUE(port.Flush());
  ExpectInOrder(ReceiveCount(port, 2), 2);
  EXPECT_EQ(port.counters().tx_lost.Read(), 3U);
  EXPECT_TRUE(port.segments(GetParam())) << "segmenting was not what the kernel refused";
}

TEST_P(UdpPortTest, IcmpErrors_DoNotDisturbSending) {
  // The destination has no receiver: every packet causes a "port unreachable", which must not come
  // back as an error of a later send.
  UdpTransmitterConfig transmit{.packets = 64,
                                .limits = {.max_datagram = 4152},
                                .segment_ipv4 = true,
                                .segment_ipv6 = true,
                                .udp_port = FreeUdpPort()};
  PortCounters counters;
  UdpTransmitter transmitter(transmit, counters);
  for (uint32_t psn = 0; psn < 50; ++psn) {
    TxPacket* packet = transmitter.Acquire();
    ASSERT_NE(packet, nullptr);
    packet->path = LoopbackPath(GetParam());
    packet->length = static_cast<uint32_t>(WriteTestPacket(kQpn, psn, 8, packet->data));
    ASSERT_EQ(transmitter.Transmit({&packet, 1}), 1U);
    ASSERT_TRUE(transmitter.Flush());
  }
  EXPECT_EQ(counters.tx_lost.Read(), 0U);
  EXPECT_EQ(counters.tx_calls.Read(), 50U);
}

TEST_P(UdpPortTest, PushBack_LosesNothingAndKeepsOrder) {
  UdpPortConfig config = LoopbackConfig();
  config.segmentation = Segmentation::kOff;
  config.packets_per_queue = 4096;
  config.socket_receive_buffer = 64U << 20;
  const auto group = MakeGroup(config);
  ASSERT_NE(group, nullptr);
  UdpPort& port = group->queue(0);
  // More than the queue holds, offered at once: the port flushes by itself and takes the rest.
  const auto packets = Acquire(port, LoopbackPath(GetParam()), 0, std::vector<size_t>(1500, 16));
  size_t taken = 0;
  while (taken < packets.size()) taken += port.Transmit(std::span(packets).subspan(taken));
  while (!port.Flush()) {
  }
  ExpectInOrder(ReceiveCount(port, 1500), 1500);
}

TEST_P(UdpPortTest, ZeroUdpChecksum_IsReceived) {
  const UdpPortConfig config = LoopbackConfig();
  const auto group = MakeGroup(config);
  ASSERT_NE(group, nullptr);
  const UniqueFd sender(socket(GetParam() ? AF_INET : AF_INET6, SOCK_DGRAM, 0));
  const int one = 1;
  if (GetParam()) {
    ASSERT_EQ(setsockopt(sender.get(), SOL_SOCKET, SO_NO_CHECK, &one, sizeof one), 0);
  } else {
    ASSERT_EQ(setsockopt(sender.get(), IPPROTO_UDP, UDP_NO_CHECK6_TX, &one, sizeof one), 0);
  }
  std::array<uint8_t, 64> bytes{};
  const size_t length = WriteTestPacket(kQpn, 0, 32, bytes.data()) + 4;
  sockaddr_in6 to6{};
  to6.sin6_family = AF_INET6;
  to6.sin6_port = htons(config.udp_port);
  to6.sin6_addr = in6addr_loopback;
  sockaddr_in to4{AF_INET, htons(config.udp_port), {htonl(INADDR_LOOPBACK)}, {}};
  ASSERT_EQ(
      sendto(sender.get(), bytes.data(), length, 0,
             GetParam() ? reinterpret_cast<sockaddr*>(&to4) : reinterpret_cast<sockaddr*>(&to6),
             GetParam() ? sizeof to4 : sizeof to6),
      static_cast<ssize_t>(length));
  ExpectInOrder(ReceiveCount(group->queue(0), 1), 1);
}

TEST_P(UdpPortTest, Restart_BindsAndSteersAnew) {
  const auto group = MakeGroup(LoopbackConfig(), 2);
  ASSERT_NE(group, nullptr);
  ASSERT_TRUE(SendTestPacket(group->queue(0), LoopbackPath(GetParam()), kQpn, 0, 8));
  SteeringTable swapped(2);
  for (uint8_t b = 0; b < kBuckets; ++b) swapped.Assign(b, static_cast<WorkerIndex>((b + 1) % 2));
  const Status status = group->Restart(swapped);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_TRUE(ReceiveAll(group->queue(0)).empty());
  ASSERT_TRUE(SendTestPacket(group->queue(0), LoopbackPath(GetParam()), kQpn, 0, 8));
  ExpectInOrder(ReceiveCount(group->queue(1), 1), 1);
  EXPECT_FALSE(group->Restart(SteeringTable(3)).ok());
}

TEST(UdpPort_Create, SecondGatewayIsRefusedWithTheHoldersName) {
  const UdpPortConfig config = LoopbackConfig();
  auto first = MakeGroup(config);
  ASSERT_NE(first, nullptr);
  const auto second = UdpPortGroup::Create(config, SteeringTable(1));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().error(), EADDRINUSE);
  EXPECT_NE(second.status().text().find("process " + std::to_string(getpid())), std::string::npos)
      << second.status().text();
  first.reset();
  EXPECT_TRUE(UdpPortGroup::Create(config, SteeringTable(1)).ok());
}

// Another process would receive the descriptors; copies in this one stand for it.
InheritedFds CopiesOf(const UdpPortGroup& group) {
  OfferedFds offered;
  group.Offer(offered);
  InheritedFds copies;
  for (const OfferedFd& one : offered) copies.Add(one.kind, one.name, UniqueFd(dup(one.fd)));
  return copies;
}

TEST_P(UdpPortTest, Inherited_HasThePacketsThatWait) {
  const UdpPortConfig config = LoopbackConfig();
  auto old = MakeGroup(config, 2);
  ASSERT_NE(old, nullptr);
  for (uint32_t psn = 0; psn < 3; ++psn)
    ASSERT_TRUE(SendTestPacket(old->queue(0), LoopbackPath(GetParam()), kQpn, psn, 8));
  InheritedFds copies = CopiesOf(*old);
  EXPECT_EQ(copies.size(), 3u);  // lock and two sockets
  auto fresh = UdpPortGroup::Create(config, SteeringTable(2), &copies);
  ASSERT_TRUE(fresh.ok()) << fresh.status().text();
  EXPECT_EQ(copies.size(), 0u);
  EXPECT_EQ((*fresh)->receive_buffer_bytes(), old->receive_buffer_bytes());
  old.reset();
  ExpectInOrder(ReceiveCount((*fresh)->queue(0), 3), 3);
  EXPECT_EQ((*fresh)->queue(0).counters().rx_overflow.Read(), 0u);
  ASSERT_TRUE(SendTestPacket((*fresh)->queue(1), LoopbackPath(GetParam()), kQpn, 0, 8));
  ExpectInOrder(ReceiveCount((*fresh)->queue(0), 1), 1);
  EXPECT_EQ(UdpPortGroup::Create(config, SteeringTable(2)).status().error(), EADDRINUSE)
      << "the lock went over, too";
}

TEST_P(UdpPortTest, Filter_DropsAndCountsAndTheNextProcessBeginsWithoutOne) {
  const UdpPortConfig config = LoopbackConfig();
  auto group = MakeGroup(config);
  ASSERT_NE(group, nullptr);
  UdpPort& port = group->queue(0);
  FloodFilter filter;
  for (auto& shares : filter.of_strangers) shares.fill(0);
  ASSERT_TRUE(port.Filter(filter));
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(SendTestPacket(port, LoopbackPath(GetParam()), kQpn, 0, 8));
  FloodFilter for_peers = filter;
  for_peers.Know(Loopback(GetParam()));
  ASSERT_TRUE(port.Filter(for_peers));
  ASSERT_TRUE(SendTestPacket(port, LoopbackPath(GetParam()), kQpn, 0, 8));
  ExpectInOrder(ReceiveCount(port, 1), 1);
  EXPECT_EQ(port.counters().rx_flood.Read(), 5u);
  EXPECT_EQ(port.counters().rx_overflow.Read(), 0u);
  ASSERT_TRUE(port.Filter(filter));

  InheritedFds copies = CopiesOf(*group);
  auto fresh = UdpPortGroup::Create(config, SteeringTable(1), &copies);
  ASSERT_TRUE(fresh.ok()) << fresh.status().text();
  group.reset();
  ASSERT_TRUE(SendTestPacket((*fresh)->queue(0), LoopbackPath(GetParam()), kQpn, 0, 8));
  ExpectInOrder(ReceiveCount((*fresh)->queue(0), 1), 1);
}

TEST(UdpPort_Create, TakenPortIsRefusedWithARemedy) {
  const UniqueFd holder(socket(AF_INET6, SOCK_DGRAM, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(holder.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(getsockname(holder.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  UdpPortConfig config = LoopbackConfig();
  config.udp_port = ntohs(address.sin6_port);
  const auto group = UdpPortGroup::Create(config, SteeringTable(1));
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().error(), EADDRINUSE);
  EXPECT_NE(group.status().text().find("ss -lunp"), std::string::npos) << group.status().text();
}

// Two gateways with one address each share a host, and neither takes the other's packets.
TEST(UdpPort_OnlyAddress, TwoOnOneHost_EachHearsItsOwn) {
  UdpPortConfig config = LoopbackConfig();
  const wire::Gid addresses[] = {wire::Gid::FromV4(0x7F000001), wire::Gid::FromV4(0x7F000002)};
  std::unique_ptr<UdpPortGroup> groups[2];
  for (size_t i = 0; i < 2; ++i) {
    config.only_address = addresses[i];
    groups[i] = MakeGroup(config);
    ASSERT_NE(groups[i], nullptr);
  }
  for (size_t i = 0; i < 2; ++i) {
    wire::Path path = LoopbackPath(true);
    path.source = addresses[i];
    path.destination = addresses[1 - i];
    ASSERT_TRUE(SendTestPacket(groups[i]->queue(0), path, kQpn, 0, 100));
    const auto got = ReceiveCount(groups[1 - i]->queue(0), 1);
    ExpectInOrder(got, 1);
    EXPECT_EQ(got[0].meta.source, addresses[i]);
    EXPECT_EQ(got[0].meta.destination, addresses[1 - i]);
    EXPECT_TRUE(ReceiveAll(groups[i]->queue(0)).empty());
  }
}

TEST(UdpPort_OnlyAddress, Taken_IsRefusedWithARemedy) {
  UdpPortConfig config = LoopbackConfig();
  UdpPortConfig all = config;
  config.only_address = Loopback(true);
  {
    const auto group = MakeGroup(config);
    const auto second = UdpPortGroup::Create(config, SteeringTable(1));
    EXPECT_EQ(second.status().error(), EADDRINUSE);
    EXPECT_NE(second.status().text().find("of 127.0.0.1 is taken by this process"),
              std::string::npos);
    EXPECT_EQ(UdpPortGroup::Create(all, SteeringTable(1)).status().error(), EADDRINUSE);
  }
  const auto everything = MakeGroup(all);
  EXPECT_EQ(UdpPortGroup::Create(config, SteeringTable(1)).status().error(), EADDRINUSE);
}

TEST(UdpPort_OnlyAddress, WhatItCannotHave_IsRefused) {
  UdpPortConfig config = LoopbackConfig();
  config.only_address = Loopback(true);
  EXPECT_EQ(UdpPortGroup::Create(config, SteeringTable(2)).status().error(), EINVAL);
  const auto group = MakeGroup(config);
  EXPECT_EQ(group->JoinMulticast(wire::Gid::FromV4(0xE0000901), "lo", 0).error(), EOPNOTSUPP);
  config.only_address = wire::Gid::FromV4(0xC6336401);
  EXPECT_EQ(UdpPortGroup::Create(config, SteeringTable(1)).status().error(), EADDRNOTAVAIL);
}

TEST(UdpPort_Create, UnknownInterfaceIsNamed) {
  UdpPortConfig config = LoopbackConfig();
  config.interfaces = {"nosuch0"};
  const auto group = UdpPortGroup::Create(config, SteeringTable(1));
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().error(), ENODEV);
  EXPECT_NE(group.status().text().find("nosuch0; there are: lo"), std::string::npos)
      << group.status().text();
}

TEST(UdpPort_Create, ReportsWhatTheKernelGranted) {
  const auto group = MakeGroup(LoopbackConfig());
  ASSERT_NE(group, nullptr);
  EXPECT_GE(group->receive_buffer_bytes(), 2048U);
  EXPECT_EQ(group->queue(0).limits().max_datagram, 4152U);
  EXPECT_FALSE(group->segmentation_reason().empty());
  EXPECT_GE(group->queue(0).wake_fd(), 0);
}

TEST(UdpPort_WakeFd, BecomesReadableWithAPacket) {
  const auto group = MakeGroup(LoopbackConfig());
  ASSERT_NE(group, nullptr);
  pollfd wait{group->queue(0).wake_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&wait, 1, 0), 0);
  ASSERT_TRUE(SendTestPacket(group->queue(0), LoopbackPath(true), kQpn, 0, 8));
  EXPECT_EQ(poll(&wait, 1, 2000), 1);
}

TEST(UdpPort_Receive, SmallSpanGetsTheRestLater) {
  const auto group = MakeGroup(LoopbackConfig());
  ASSERT_NE(group, nullptr);
  UdpPort& port = group->queue(0);
  const auto packets = Acquire(port, LoopbackPath(true), 0, std::vector<size_t>(15, 1024));
  ASSERT_EQ(port.Transmit(packets), 15U);
  ASSERT_TRUE(port.Flush());
  std::array<wire::RxDatagram, 4> four;
  std::vector<uint32_t> order;
  pollfd wait{port.wake_fd(), POLLIN, 0};
  ASSERT_EQ(poll(&wait, 1, 2000), 1);
  while (const size_t count = port.Receive(four)) {
    for (size_t i = 0; i < count; ++i) {
      EXPECT_TRUE(IsTestPacket(four[i].bytes));
      order.push_back(PsnOf(four[i].bytes));
    }
  }
  ASSERT_EQ(order.size(), 15U);
  for (uint32_t i = 0; i < 15; ++i) EXPECT_EQ(order[i], i);
}

// --- pure parts
// -----------------------------------------------------------------------------------

std::vector<TxPacket> Shapes(const std::vector<uint32_t>& lengths) {
  std::vector<TxPacket> packets(lengths.size());
  for (size_t i = 0; i < lengths.size(); ++i) packets[i].length = lengths[i];
  return packets;
}

size_t RunOf(std::vector<TxPacket>& packets) {
  std::vector<TxPacket*> pointers;
  pointers.reserve(packets.size());
  for (TxPacket& packet : packets) pointers.push_back(&packet);
  return SegmentRun(pointers);
}

TEST(UdpSegmentRun, EqualLengthsAndOneShorterTail) {
  auto packets = Shapes({100, 100, 100, 40, 40});
  EXPECT_EQ(RunOf(packets), 4U);
  packets = Shapes({100, 101});
  EXPECT_EQ(RunOf(packets), 1U);
  packets = Shapes({100});
  EXPECT_EQ(RunOf(packets), 1U);
}

TEST(UdpSegmentRun, EndsWhereThePathChanges) {
  for (int field = 0; field < 5; ++field) {
    auto packets = Shapes({100, 100, 100});
    wire::Path& path = packets[2].path;
    if (field == 0) path.source.bytes[3] = 1;
    if (field == 1) path.destination.bytes[3] = 1;
    if (field == 2) path.source_port = 0xC001;
    if (field == 3) path.traffic_class = 2;
    if (field == 4) path.hop_limit = 1;
    EXPECT_EQ(RunOf(packets), 2U) << field;
  }
}

TEST(UdpSegmentRun, StaysWithinTheKernelsBounds) {
  auto many = Shapes(std::vector<uint32_t>(100, 20));
  EXPECT_EQ(RunOf(many), kMaxSegments);
  auto large = Shapes(std::vector<uint32_t>(20, 4112));
  EXPECT_EQ(RunOf(large), kMaxUdpPayload / 4116);
  auto tail = Shapes({32000, 32000, 1499});
  EXPECT_EQ(RunOf(tail), 2U + (64008 + 1503 <= kMaxUdpPayload ? 1U : 0U));
}

}  // namespace
}  // namespace rocegw::port::udp_port
