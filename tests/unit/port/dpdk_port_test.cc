// SPDX-License-Identifier: Apache-2.0
// DPDK ports over virtual devices that need no privilege: memif, pcap, ring, null.
#include "gateway/port/dpdk/dpdk_port.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gateway/port/dpdk/dpdk_environment.h"
#include "gateway/wire/crc/icrc.h"
#include "tests/support/network/port_fixture.h"

namespace rocegw::port {
namespace {

using rocegw::testing::IsTestPacket;
using rocegw::testing::PsnOf;
using rocegw::testing::ReceiveAll;
using rocegw::testing::Received;
using rocegw::testing::SendTestPacket;
using rocegw::testing::TestAddress;
using rocegw::testing::WriteTestPacket;

constexpr Qpn kQpn{0x12};
constexpr size_t kMtu = 4200;

DpdkPortConfig Config(const std::string& device, uint8_t host) {
  return {.device = device,
          .network = {.addresses = {{TestAddress(host), 24, false},
                                    {TestAddress(host, false), 64, false}}},
          .mac = {0x02, 0x09, 0, 0, 0, host},
          .mtu = kMtu,
          .packets_per_queue = 512,
          .receive_buffers = 512,
          .descriptors = 256};
}

wire::Path PathBetween(uint8_t from, uint8_t to, bool ipv4) {
  return {.source = TestAddress(from, ipv4),
          .destination = TestAddress(to, ipv4),
          .source_port = 0xC111,
          .traffic_class = 0x6A,
          .hop_limit = 64};
}

class DpdkPortTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Status status = StartDpdk({.huge_pages = false, .memory_mb = 256});
    ASSERT_TRUE(status.ok()) << status.text();
  }

  static std::unique_ptr<DpdkPortGroup> Open(const DpdkPortConfig& config, size_t workers = 1) {
    auto group = DpdkPortGroup::Create(config, SteeringTable(workers));
    EXPECT_TRUE(group.ok()) << group.status().text();
    return group.ok() ? std::move(*group) : nullptr;
  }

  // Polls all ports until the first one has received so many; both ends must run for ARP to work.
  static std::vector<Received> Exchange(PacketPort& receiver, PacketPort& other, size_t count) {
    std::vector<Received> got;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    while (got.size() < count && std::chrono::steady_clock::now() < deadline) {
      for (auto& received : ReceiveAll(receiver)) got.push_back(std::move(received));
      (void)ReceiveAll(other);
      (void)other.Flush();
      std::this_thread::yield();
    }
    return got;
  }

  static void ExpectWhole(const std::vector<Received>& got, const wire::Path& path, size_t count) {
    ASSERT_EQ(got.size(), count);
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(PsnOf(got[i].bytes), i);
      EXPECT_TRUE(IsTestPacket(got[i].bytes));
      const wire::RxMeta& meta = got[i].meta;
      EXPECT_EQ(meta.source, path.source);
      EXPECT_EQ(meta.destination, path.destination);
      EXPECT_EQ(meta.source_port, path.source_port);
      EXPECT_EQ(meta.traffic_class, path.traffic_class);
      EXPECT_EQ(meta.hop_limit, path.hop_limit);
      EXPECT_EQ(meta.ip_id_known, path.destination.IsV4());
      uint16_t id = meta.ip_id;
      EXPECT_TRUE(wire::VerifyIcrc(meta, got[i].bytes, &id));
    }
  }

  // Sends several packets, of which the first ones wait for address resolution.
  static void Send(PacketPort& port, const wire::Path& path, uint32_t count, size_t payload) {
    for (uint32_t psn = 0; psn < count; ++psn) {
      TxPacket* packet = port.Acquire();
      ASSERT_NE(packet, nullptr);
      packet->path = path;
      packet->length = static_cast<uint32_t>(WriteTestPacket(kQpn, psn, payload, packet->data));
      ASSERT_EQ(port.Transmit({&packet, 1}), 1U);
    }
    (void)port.Flush();
  }

  static std::string TemporaryFile(const std::string& name) {
    return std::filesystem::temp_directory_path() /
           ("rocegw-" + std::to_string(getpid()) + "-" + name);
  }
};

TEST_F(DpdkPortTest, Start_LeavesTheAffinityAlone) {
  cpu_set_t affinity;
  ASSERT_EQ(sched_getaffinity(0, sizeof affinity, &affinity), 0);
  EXPECT_EQ(CPU_COUNT(&affinity), static_cast<int>(std::thread::hardware_concurrency()));
}

// The two ends of a memif link. Memif devices stay until the process ends: each has its own name.
struct MemifEnds {
  MemifEnds(const std::string& name, uint16_t server_vlan, uint16_t client_vlan) {
    const std::string rest = ",bsize=8192,socket=rocegw-test-" + std::to_string(getpid()) + name;
    DpdkPortConfig one = Config("net_memif_s" + name + ",role=server" + rest, 1);
    DpdkPortConfig two = Config("net_memif_c" + name + ",role=client" + rest, 2);
    one.vlan = server_vlan;
    two.vlan = client_vlan;
    auto opened = DpdkPortGroup::Create(one, SteeringTable(1));
    EXPECT_TRUE(opened.ok()) << opened.status().text();
    server = std::move(*opened);
    opened = DpdkPortGroup::Create(two, SteeringTable(1));
    EXPECT_TRUE(opened.ok()) << opened.status().text();
    client = std::move(*opened);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!(server->link() && client->link()) && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(server->link() && client->link());
  }
  std::unique_ptr<DpdkPortGroup> server;
  std::unique_ptr<DpdkPortGroup> client;
};

class DpdkMemifTest : public DpdkPortTest, public ::testing::WithParamInterface<bool> {
 protected:
  static std::string Family() { return GetParam() ? "4" : "6"; }
  // Sends packets in both directions; the first ones wait for the neighbour.
  static void ExchangeBothWays(MemifEnds& ends) {
    PacketPort& server = ends.server->queue(0);
    PacketPort& client = ends.client->queue(0);
    const wire::Path there = PathBetween(1, 2, GetParam());
    Send(server, there, 20, 4096);
    EXPECT_FALSE(server.Flush()) << "the neighbour is not known yet";
    ExpectWhole(Exchange(client, server, 20), there, 20);
    EXPECT_TRUE(server.Flush());
    const wire::Path back = PathBetween(2, 1, GetParam());
    Send(client, back, 20, 64);
    ExpectWhole(Exchange(server, client, 20), back, 20);
    EXPECT_EQ(server.counters().tx_lost.Read(), 0U);
  }
};
INSTANTIATE_TEST_SUITE_P(Families, DpdkMemifTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "IPv4" : "IPv6"; });

TEST_P(DpdkMemifTest, TwoPorts_ResolveEachOtherAndExchangePackets) {
  MemifEnds ends(Family(), 0, 0);
  EXPECT_EQ(ends.server->queue(0).limits().max_datagram, kMtu - 28);
  ExchangeBothWays(ends);
}

TEST_P(DpdkMemifTest, TwoPortsOfAVlan_DoSoWithItsTag) {
  MemifEnds ends(Family() + "v", 7, 7);
  ExchangeBothWays(ends);
}

TEST_F(DpdkPortTest, Vlans_DoNotHearEachOther) {
  for (const auto& [name, server_vlan, client_vlan] :
       {std::tuple("other", 7, 8), std::tuple("none", 7, 0), std::tuple("tag", 0, 7)}) {
    MemifEnds ends(name, static_cast<uint16_t>(server_vlan), static_cast<uint16_t>(client_vlan));
    PacketPort& server = ends.server->queue(0);
    PacketPort& client = ends.client->queue(0);
    Send(server, PathBetween(1, 2, true), 1, 8);
    // Its request for the neighbour arrives, and gets no answer.
    const uint64_t before = client.counters().rx_not_roce.Read();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (client.counters().rx_not_roce.Read() == before &&
           std::chrono::steady_clock::now() < deadline) {
      EXPECT_TRUE(ReceiveAll(client).empty());
      (void)server.Flush();
    }
    EXPECT_GT(client.counters().rx_not_roce.Read(), before) << name;
    EXPECT_TRUE(ReceiveAll(server).empty());
    EXPECT_FALSE(server.Flush()) << name << ": somebody has answered";
  }
}

TEST_F(DpdkPortTest, OwnAddress_TurnsRoundInside) {
  const auto group = Open(Config("net_null0", 1));
  ASSERT_NE(group, nullptr);
  const wire::Path self = PathBetween(1, 1, true);
  Send(group->queue(0), self, 5, 100);
  std::array<wire::RxDatagram, 5> burst;
  ASSERT_EQ(group->queue(0).Receive(burst), 5U);
  for (uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(PsnOf(burst[i].bytes), i);
    uint16_t id = burst[i].meta.ip_id;
    EXPECT_TRUE(wire::VerifyIcrc(burst[i].meta, burst[i].bytes, &id));
  }
}

TEST_F(DpdkPortTest, GarbageFrames_AreCountedAndDropped) {
  const auto group = Open(Config("net_null1", 1));
  ASSERT_NE(group, nullptr);
  std::array<wire::RxDatagram, 32> burst;
  // The null device returns frames of zeros without end.
  EXPECT_EQ(group->queue(0).Receive(burst), 0U);
  EXPECT_EQ(group->queue(0).counters().rx_not_roce.Read(), 32U);
}

TEST_F(DpdkPortTest, Unresolved_IsLostAfterItsTime) {
  const auto group = Open(Config("net_null2", 1));
  ASSERT_NE(group, nullptr);
  Send(group->queue(0), PathBetween(1, 2, true), 3, 8);
  EXPECT_FALSE(group->queue(0).Flush());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!group->queue(0).Flush() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(group->queue(0).counters().tx_lost.Read(), 3U);
}

TEST_F(DpdkPortTest, Ring_LoopsFramesForOthersBack) {
  DpdkPortConfig config = Config("net_ring0", 1);
  config.network.neighbours = {{TestAddress(2), {0x02, 0x09, 0, 0, 0, 2}}};
  const auto group = Open(config);
  ASSERT_NE(group, nullptr);
  // Takes its own announcements off the ring.
  (void)group->queue(0).Flush();
  EXPECT_TRUE(ReceiveAll(group->queue(0)).empty());
  const uint64_t before = group->queue(0).counters().rx_not_roce.Read();
  Send(group->queue(0), PathBetween(1, 2, true), 4, 500);
  EXPECT_TRUE(ReceiveAll(group->queue(0)).empty());
  EXPECT_EQ(group->queue(0).counters().rx_not_roce.Read() - before, 4U) << "not our address";
}

TEST_F(DpdkPortTest, Pcap_WritesFramesThatAnotherPortReads) {
  const std::string file = TemporaryFile("frames.pcap");
  const wire::Path path = PathBetween(1, 2, true);
  const wire::Path path6 = PathBetween(1, 2, false);
  {
    DpdkPortConfig config = Config("net_pcap0,rx_pcap=/dev/null,tx_pcap=" + file, 1);
    // An empty capture to read from.
    const std::string empty = TemporaryFile("empty.pcap");
    FILE* out = std::fopen(empty.c_str(), "wb");
    ASSERT_NE(out, nullptr);
    const std::array<uint32_t, 6> header{0xA1B2C3D4, 4U << 16 | 2, 0, 0, 65535, 1};
    ASSERT_EQ(std::fwrite(header.data(), sizeof header, 1, out), 1U);
    std::fclose(out);
    config.device = "net_pcap0,rx_pcap=" + empty + ",tx_pcap=" + file;
    config.network.neighbours = {{TestAddress(2), {0x02, 0x09, 0, 0, 0, 2}},
                                 {TestAddress(2, false), {0x02, 0x09, 0, 0, 0, 2}}};
    config.udp_checksum = true;
    const auto writer = Open(config, 2);
    ASSERT_NE(writer, nullptr);
    EXPECT_EQ(writer->receive_queues(), 1U) << "a capture file is one queue";
    // The second worker shares the first one's transmit queue.
    Send(writer->queue(1), path, 10, 1024);
    Send(writer->queue(0), path6, 10, 1024);
    std::filesystem::remove(empty);
  }
  DpdkPortConfig config = Config("net_pcap1,rx_pcap=" + file, 2);
  config.device += ",tx_pcap=" + TemporaryFile("out.pcap");
  const auto reader = Open(config);
  ASSERT_NE(reader, nullptr);
  auto got = ReceiveAll(reader->queue(0));
  ASSERT_EQ(got.size(), 20U);
  ExpectWhole({got.begin(), got.begin() + 10}, path, 10);
  ExpectWhole({got.begin() + 10, got.end()}, path6, 10);
  std::filesystem::remove(file);
  std::filesystem::remove(TemporaryFile("out.pcap"));
}

TEST_F(DpdkPortTest, Create_RefusesWithAReason) {
  DpdkPortConfig config = Config("net_nosuch0", 1);
  auto group = DpdkPortGroup::Create(config, SteeringTable(1));
  ASSERT_FALSE(group.ok());
  EXPECT_NE(group.status().text().find("net_nosuch0"), std::string::npos) << group.status().text();

  config = Config("net_null3", 1);
  config.network.addresses.clear();
  group = DpdkPortGroup::Create(config, SteeringTable(1));
  ASSERT_FALSE(group.ok());
  EXPECT_NE(group.status().text().find("addresses"), std::string::npos) << group.status().text();

  const auto first = Open(Config("net_null4", 1));
  ASSERT_NE(first, nullptr);
  group = DpdkPortGroup::Create(Config("net_null4", 1), SteeringTable(1));
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().error(), EEXIST);

  config = Config("net_null5", 1);
  config.mtu = 100;
  group = DpdkPortGroup::Create(config, SteeringTable(1));
  ASSERT_FALSE(group.ok());
  EXPECT_NE(group.status().text().find("MTU"), std::string::npos) << group.status().text();
}

TEST_F(DpdkPortTest, Destroyed_TheDeviceCanBeMadeAgain) {
  for (int i = 0; i < 3; ++i) {
    const auto group = Open(Config("net_null6", 1));
    ASSERT_NE(group, nullptr);
    EXPECT_NE(group->queue(0).Acquire(), nullptr) << "one buffer is never given back";
  }
}

}  // namespace
}  // namespace rocegw::port
