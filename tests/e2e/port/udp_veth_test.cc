// SPDX-License-Identifier: Apache-2.0
// The udp port mode between two network namespaces joined by a veth pair, with a packet socket
// looking at the frames. Needs root.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "gateway/port/frame.h"
#include "gateway/port/kernel/local_address.h"
#include "gateway/port/udp/udp_port.h"
#include "gateway/wire/crc/icrc.h"
#include "tests/support/network/network_namespace.h"
#include "tests/support/network/port_fixture.h"

namespace rocegw::port {
namespace {

using rocegw::testing::IntroduceNeighbours;
using rocegw::testing::IsTestPacket;
using rocegw::testing::JoinByVeth;
using rocegw::testing::NetworkNamespace;
using rocegw::testing::PsnOf;
using rocegw::testing::ReceiveCount;
using rocegw::testing::Received;
using rocegw::testing::SendTestPacket;
using rocegw::testing::TestAddress;
using rocegw::testing::WriteTestPacket;

constexpr Qpn kQpn{0x12};
constexpr char kInterface[] = "veth0";

// Sees every frame that arrives at an interface.
class FrameTap {
 public:
  FrameTap(const NetworkNamespace& where, const char* interface) {
    const NetworkNamespace::Inside inside(where);
    socket_ = UniqueFd(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL)));
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(if_nametoindex(interface));
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }

  // The next RoCEv2 frames, until there are so many or nothing comes.
  std::vector<Received> Roce(size_t count) {
    std::vector<Received> frames;
    pollfd wait{socket_.get(), POLLIN, 0};
    while (frames.size() < count && poll(&wait, 1, 2000) == 1) {
      std::array<uint8_t, 70000> buffer;
      sockaddr_ll from{};
      socklen_t from_length = sizeof from;
      const ssize_t length = recvfrom(socket_.get(), buffer.data(), buffer.size(), 0,
                                      reinterpret_cast<sockaddr*>(&from), &from_length);
      if (length < 0 || from.sll_pkttype == PACKET_OUTGOING) continue;
      uint16_t ether_type = 0;
      std::span<const uint8_t> network;
      ParsedFrame frame;
      if (!ParseEthernet(std::span(buffer).first(static_cast<size_t>(length)), ether_type,
                         network) ||
          ParseIpUdp(ether_type, network, frame) != FrameVerdict::kRoce) {
        continue;
      }
      if (ether_type == kEtherTypeIpv4) {
        EXPECT_EQ(network[6], 0x40) << "DF, no fragment";
      }
      frames.push_back({frame.meta, {frame.payload.begin(), frame.payload.end()}});
    }
    return frames;
  }

 private:
  UniqueFd socket_;
};

class UdpVethTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    for (auto& space : spaces_) {
      auto created = NetworkNamespace::Create();
      ASSERT_TRUE(created.ok()) << created.status().text();
      space.emplace(std::move(*created));
    }
    Status status = JoinByVeth(*spaces_[0], *spaces_[1], kInterface, 4200);
    ASSERT_TRUE(status.ok()) << status.text();
    status = IntroduceNeighbours(*spaces_[0], *spaces_[1], kInterface);
    ASSERT_TRUE(status.ok()) << status.text();
    // A port opens its transmit sockets when it meets a new source port, in the caller's namespace.
    sender_space_.emplace(*spaces_[0]);
  }

  std::unique_ptr<UdpPortGroup> Open(size_t side, size_t workers = 1,
                                     Segmentation segmentation = Segmentation::kAuto) {
    const NetworkNamespace::Inside inside(*spaces_[side]);
    auto group = UdpPortGroup::Create({.interfaces = {kInterface}, .segmentation = segmentation},
                                      SteeringTable(workers));
    EXPECT_TRUE(group.ok()) << group.status().text();
    return group.ok() ? std::move(*group) : nullptr;
  }

  void Run(size_t side, const std::string& command) {
    const Status status = spaces_[side]->Run(command);
    ASSERT_TRUE(status.ok()) << status.text();
  }

  static wire::Path PathTo(uint16_t source_port = 0xC140) {
    return {.source = TestAddress(1, GetParam()),
            .destination = TestAddress(2, GetParam()),
            .source_port = source_port,
            .traffic_class = 0x6A,
            .hop_limit = 64};
  }

  // One run of fifteen packets, the last one shorter.
  static void SendRun(PacketPort& port, uint32_t first_psn = 0, size_t payload = 4096,
                      size_t count = 15) {
    std::vector<TxPacket*> packets;
    for (uint32_t i = 0; i < count; ++i) {
      TxPacket* packet = port.Acquire();
      ASSERT_NE(packet, nullptr);
      packet->path = PathTo();
      packet->length = static_cast<uint32_t>(WriteTestPacket(
          kQpn, first_psn + i, i + 1 == count ? payload / 2 : payload, packet->data));
      packets.push_back(packet);
    }
    ASSERT_EQ(port.Transmit(packets), count);
    ASSERT_TRUE(port.Flush());
  }

  std::optional<NetworkNamespace> spaces_[2];
  std::optional<NetworkNamespace::Inside> sender_space_;
};

INSTANTIATE_TEST_SUITE_P(Families, UdpVethTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "IPv4" : "IPv6"; });

TEST_P(UdpVethTest, Run_CrossesUnsegmentedAndArrivesWhole) {
  const auto sender = Open(0);
  const auto receiver = Open(1);
  ASSERT_TRUE(sender != nullptr && receiver != nullptr);
  EXPECT_EQ(sender->queue(0).limits().max_datagram, 4200U - 28);
  ASSERT_TRUE(sender->queue(0).segments(GetParam())) << sender->segmentation_reason();
  SendRun(sender->queue(0));
  const auto got = ReceiveCount(receiver->queue(0), 15);
  ASSERT_EQ(got.size(), 15U);
  for (uint32_t i = 0; i < 15; ++i) {
    EXPECT_EQ(PsnOf(got[i].bytes), i);
    EXPECT_TRUE(IsTestPacket(got[i].bytes));
    EXPECT_EQ(got[i].meta.source, TestAddress(1, GetParam()));
    EXPECT_EQ(got[i].meta.destination, TestAddress(2, GetParam()));
    EXPECT_EQ(got[i].meta.traffic_class, 0x6A);
    uint16_t id = 0;
    EXPECT_TRUE(wire::VerifyIcrc(got[i].meta, got[i].bytes, &id));
  }
  EXPECT_EQ(sender->queue(0).counters().tx_calls.Read(), 1U);
  EXPECT_EQ(receiver->queue(0).counters().rx_merged.Read(), 15U);
}

TEST_P(UdpVethTest, SegmentedInSoftware_SegmentKCarriesIdKAndAGoodIcrc) {
  Run(0, std::string("ethtool -K ") + kInterface + " tx-udp-segmentation off");
  const auto sender = Open(0);
  const auto receiver = Open(1);
  ASSERT_TRUE(sender != nullptr && receiver != nullptr);
  FrameTap tap(*spaces_[1], kInterface);
  // IDs start anew with each call.
  SendRun(sender->queue(0), 0);
  SendRun(sender->queue(0), 15);
  const auto frames = tap.Roce(30);
  ASSERT_EQ(frames.size(), 30U);
  for (uint32_t i = 0; i < 30; ++i) {
    EXPECT_EQ(PsnOf(frames[i].bytes), i);
    EXPECT_EQ(frames[i].meta.ip_id, GetParam() ? i % 15 : 0);
    uint16_t id = frames[i].meta.ip_id;
    EXPECT_TRUE(wire::VerifyIcrc(frames[i].meta, frames[i].bytes, &id)) << i;
  }
  EXPECT_EQ(ReceiveCount(receiver->queue(0), 30).size(), 30U);
}

TEST_P(UdpVethTest, SegmentationOff_EachPacketCarriesId0) {
  const auto sender = Open(0, 1, Segmentation::kOff);
  const auto receiver = Open(1);
  ASSERT_TRUE(sender != nullptr && receiver != nullptr);
  FrameTap tap(*spaces_[1], kInterface);
  SendRun(sender->queue(0));
  const auto frames = tap.Roce(15);
  ASSERT_EQ(frames.size(), 15U);
  for (const Received& frame : frames) {
    EXPECT_EQ(frame.meta.ip_id, 0);
    uint16_t id = 0;
    EXPECT_TRUE(wire::VerifyIcrc(frame.meta, frame.bytes, &id));
  }
  EXPECT_EQ(ReceiveCount(receiver->queue(0), 15).size(), 15U);
}

TEST_P(UdpVethTest, TwoWorkers_MergedBuffersBelongToOneWorker) {
  const auto sender = Open(0);
  const auto receiver = Open(1, 2);
  ASSERT_TRUE(sender != nullptr && receiver != nullptr);
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const Qpn qpn{bucket << kBucketShift | 7};
    std::vector<TxPacket*> packets;
    for (uint32_t i = 0; i < 4; ++i) {
      TxPacket* packet = sender->queue(0).Acquire();
      packet->path = PathTo(SourcePort(5, qpn));
      packet->length = static_cast<uint32_t>(WriteTestPacket(qpn, i, 1024, packet->data));
      packets.push_back(packet);
    }
    ASSERT_EQ(sender->queue(0).Transmit(packets), 4U);
    ASSERT_TRUE(sender->queue(0).Flush());
  }
  for (size_t queue = 0; queue < 2; ++queue) {
    const auto got = ReceiveCount(receiver->queue(queue), 128);
    EXPECT_EQ(got.size(), 128U);
    for (const Received& received : got) EXPECT_EQ((received.bytes[5] >> 2) % 2U, queue);
    EXPECT_EQ(receiver->queue(queue).counters().rx_merged.Read(), 128U);
  }
}

TEST_P(UdpVethTest, NobodyListens_SendingGoesOn) {
  const auto sender = Open(0);
  ASSERT_NE(sender, nullptr);
  for (uint32_t i = 0; i < 20; ++i) SendRun(sender->queue(0), i * 15);
  EXPECT_EQ(sender->queue(0).counters().tx_lost.Read(), 0U);
  EXPECT_EQ(sender->queue(0).counters().tx_calls.Read(), 20U);
  const auto receiver = Open(1);
  ASSERT_NE(receiver, nullptr);
  SendRun(sender->queue(0));
  EXPECT_EQ(ReceiveCount(receiver->queue(0), 15).size(), 15U);
}

TEST_P(UdpVethTest, LinkDown_LosesPacketsOnlyWhileItIs) {
  const auto sender = Open(0);
  const auto receiver = Open(1);
  ASSERT_TRUE(sender != nullptr && receiver != nullptr);
  Run(0, std::string("ip link set ") + kInterface + " down");
  SendRun(sender->queue(0));
  EXPECT_EQ(sender->queue(0).counters().tx_lost.Read(), 15U);
  Run(0, std::string("ip link set ") + kInterface + " up");
  // IPv6 loses its address with the link.
  if (!GetParam()) Run(0, std::string("ip addr add fd09::1/64 nodad dev ") + kInterface);
  SendRun(sender->queue(0));
  EXPECT_EQ(ReceiveCount(receiver->queue(0), 15).size(), 15U);
  EXPECT_EQ(sender->queue(0).counters().tx_lost.Read(), 15U);
  EXPECT_TRUE(sender->queue(0).segments(GetParam()));
}

TEST_P(UdpVethTest, MtuLoweredLater_TooLongOnesAreLostShorterOnesPass) {
  const auto sender = Open(0);
  const auto receiver = Open(1);
  ASSERT_TRUE(sender != nullptr && receiver != nullptr);
  Run(0, std::string("ip link set ") + kInterface + " mtu 1500");
  SendRun(sender->queue(0), 0, 4096);
  EXPECT_EQ(sender->queue(0).counters().tx_lost.Read(), 15U);
  SendRun(sender->queue(0), 0, 1024);
  EXPECT_EQ(ReceiveCount(receiver->queue(0), 15).size(), 15U);
  EXPECT_TRUE(sender->queue(0).segments(GetParam())) << "the MTU was at fault, not segmentation";
}

TEST_P(UdpVethTest, SlowReceiver_OverflowIsCounted) {
  const auto sender = Open(0);
  std::unique_ptr<UdpPortGroup> receiver;
  {
    const NetworkNamespace::Inside inside(*spaces_[1]);
    auto group = UdpPortGroup::Create(
        {.interfaces = {kInterface}, .socket_receive_buffer = 128U << 10}, SteeringTable(1));
    ASSERT_TRUE(group.ok()) << group.status().text();
    receiver = std::move(*group);
  }
  ASSERT_NE(sender, nullptr);
  EXPECT_LE(receiver->receive_buffer_bytes(), 256U << 10);
  for (uint32_t i = 0; i < 64; ++i) SendRun(sender->queue(0));
  const size_t first = rocegw::testing::ReceiveAll(receiver->queue(0)).size();
  EXPECT_LT(first, 64U * 15);
  // The kernel tells the number of drops with the next packet.
  ASSERT_TRUE(SendTestPacket(sender->queue(0), PathTo(), kQpn, 1, 8));
  EXPECT_EQ(ReceiveCount(receiver->queue(0), 1).size(), 1U);
  EXPECT_GT(receiver->queue(0).counters().rx_overflow.Read(), 0U);
}

TEST_P(UdpVethTest, SecondGateway_OnlyInAnotherNamespace) {
  const auto first = Open(0);
  const auto elsewhere = Open(1);
  ASSERT_TRUE(first != nullptr && elsewhere != nullptr);
  const NetworkNamespace::Inside inside(*spaces_[0]);
  const auto second = UdpPortGroup::Create({.interfaces = {kInterface}}, SteeringTable(1));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().error(), EADDRINUSE);
  EXPECT_NE(second.status().text().find("already serves UDP port 4791"), std::string::npos)
      << second.status().text();
}

class LocalAddressVethTest : public UdpVethTest {};
INSTANTIATE_TEST_SUITE_P(Families, LocalAddressVethTest, ::testing::Values(true));

TEST_P(LocalAddressVethTest, ReadInterface_SeesAddressesMtuMacAndLink) {
  const NetworkNamespace::Inside inside(*spaces_[0]);
  auto info = ReadInterface(kInterface);
  ASSERT_TRUE(info.ok()) << info.status().text();
  EXPECT_EQ(info->mtu, 4200U);
  EXPECT_NE(info->mac, MacAddress{});
  EXPECT_TRUE(info->link);
  // The link-local address is first once the kernel has looked for duplicates.
  ASSERT_FALSE(info->addresses.empty());
  const size_t first = info->addresses[0].link_local ? 1 : 0;
  ASSERT_GE(info->addresses.size(), first + 2);
  EXPECT_EQ(info->addresses[first].gid, TestAddress(1, true));
  EXPECT_EQ(info->addresses[first + 1].gid, TestAddress(1, false));
  EXPECT_FALSE(info->addresses[first + 1].link_local);
  Run(1, std::string("ip link set ") + kInterface + " down");
  info = ReadInterface(kInterface);
  ASSERT_TRUE(info.ok());
  EXPECT_TRUE(info->up);
  EXPECT_FALSE(info->link);
}

TEST_P(LocalAddressVethTest, ReadInterface_LeavesOutTentativeAddresses) {
  Run(0, std::string("sysctl -qw net.ipv6.conf.") + kInterface + ".dad_transmits=100");
  Run(0, std::string("ip addr add fd09::77/64 dev ") + kInterface);
  const NetworkNamespace::Inside inside(*spaces_[0]);
  auto info = ReadInterface(kInterface);
  ASSERT_TRUE(info.ok()) << info.status().text();
  for (const InterfaceAddress& address : info->addresses) {
    EXPECT_NE(address.gid, TestAddress(0x77, false));
  }
}

TEST_P(LocalAddressVethTest, SourceFor_FollowsTheRoutes) {
  const NetworkNamespace::Inside inside(*spaces_[0]);
  for (const bool ipv4 : {true, false}) {
    auto source = SourceFor(TestAddress(2, ipv4));
    ASSERT_TRUE(source.ok()) << source.status().text();
    EXPECT_EQ(*source, TestAddress(1, ipv4));
  }
  EXPECT_FALSE(SourceFor(wire::Gid::FromV4(0xC0000201)).ok()) << "no route";
}

TEST_P(LocalAddressVethTest, Monitor_TellsOfANewAddress) {
  std::optional<AddressMonitor> monitor;
  {
    const NetworkNamespace::Inside inside(*spaces_[0]);
    auto created = AddressMonitor::Create();
    ASSERT_TRUE(created.ok()) << created.status().text();
    monitor.emplace(std::move(*created));
  }
  (void)monitor->Drain();
  EXPECT_FALSE(monitor->Drain());
  Run(0, std::string("ip addr add 10.9.0.77/24 dev ") + kInterface);
  pollfd wait{monitor->fd(), POLLIN, 0};
  ASSERT_EQ(poll(&wait, 1, 2000), 1);
  EXPECT_TRUE(monitor->Drain());
}

}  // namespace
}  // namespace rocegw::port
