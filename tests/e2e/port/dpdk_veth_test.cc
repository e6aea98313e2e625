// SPDX-License-Identifier: Apache-2.0
// The af_packet port mode on a veth pair shared with the kernel, against the udp port mode on the
// other side. Needs root.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gateway/port/dpdk/dpdk_environment.h"
#include "gateway/port/dpdk/dpdk_port.h"
#include "gateway/port/kernel/kernel_neighbours.h"
#include "gateway/port/udp/udp_port.h"
#include "tests/support/network/network_namespace.h"
#include "tests/support/network/port_fixture.h"
#include "tests/support/network/veth_test.h"

namespace rocegw::port {
namespace {

using rocegw::testing::NetworkNamespace;
using rocegw::testing::PathBetween;
using rocegw::testing::ReceiveAll;
using rocegw::testing::Received;
using rocegw::testing::TestAddress;

constexpr size_t kMtu = 4200;
constexpr auto kPatience = rocegw::testing::kVethPatience;

class DpdkVethTest : public rocegw::testing::VethTest {
 protected:
  DpdkVethTest() : VethTest(kMtu) {}

  static void SetUpTestSuite() {
    const Status status = StartDpdk({.huge_pages = false, .memory_mb = 512});
    ASSERT_TRUE(status.ok()) << status.text();
  }

  void SetUp() override {
    VethTest::SetUp();
    // A packet socket sees what a veth carries, and a veth carries unsegmented sends whole; a
    // network card would have cut them.
    const Status status = spaces_[1]->Run("ethtool -K " + interface_ + " tx-udp-segmentation off");
    ASSERT_TRUE(status.ok()) << status.text();
  }

  std::unique_ptr<DpdkPortGroup> OpenDpdk(size_t workers = 1) {
    const NetworkNamespace::Inside inside(*spaces_[0]);
    auto group = DpdkPortGroup::Create({.device = AfPacketDevice(interface_, workers, kMtu),
                                        .interface = interface_,
                                        .packets_per_queue = 512,
                                        .receive_buffers = 1536},
                                       SteeringTable(workers));
    EXPECT_TRUE(group.ok()) << group.status().text();
    return group.ok() ? std::move(*group) : nullptr;
  }

  // A new device hears everything for a moment.
  static void TakeEarlyFrames(DpdkPortGroup& group) {
    for (size_t i = 0; i < group.queues(); ++i) ReceiveAll(group.queue(i));
  }
};

INSTANTIATE_TEST_SUITE_P(Families, DpdkVethTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "IPv4" : "IPv6"; });

TEST_P(DpdkVethTest, BothWays_WithTheKernelsNeighbours) {
  const auto dpdk = OpenDpdk();
  const auto udp = OpenUdp();
  ASSERT_TRUE(dpdk != nullptr && udp != nullptr);
  EXPECT_EQ(dpdk->mtu(), kMtu);
  // Nobody has told the kernel about the neighbour: the first packets wait until it has found out.
  const wire::Path there = PathBetween(1, 2, GetParam());
  Send(0, dpdk->queue(0), there, 40, 4096);
  ExpectWhole(Poll(udp->queue(0), 40), there, 40);
  const wire::Path back = PathBetween(2, 1, GetParam());
  Send(1, udp->queue(0), back, 30, 4096);
  const auto got = Poll(dpdk->queue(0), 30);
  ExpectWhole(got, back, 30);
  for (const Received& received : got) EXPECT_EQ(received.meta.ip_id_known, GetParam());
  EXPECT_EQ(dpdk->queue(0).counters().tx_lost.Read(), 0U);
}

TEST_P(DpdkVethTest, Kernel_KeepsSilentOn4791AndAnswersTheRest) {
  const auto dpdk = OpenDpdk();
  ASSERT_NE(dpdk, nullptr);
  const auto udp = OpenUdp();
  ASSERT_NE(udp, nullptr);
  const std::string counter = GetParam() ? "IcmpOutDestUnreachs" : "Icmp6OutDestUnreachs";
  const std::string count = "test $(nstat -asz " + counter + " | awk 'NR>1 {print $2}') -eq ";
  Send(1, udp->queue(0), PathBetween(2, 1, GetParam()), 10, 64);
  EXPECT_EQ(Poll(dpdk->queue(0), 10).size(), 10U);
  Status status = spaces_[0]->Run(count + "0");
  EXPECT_TRUE(status.ok()) << "ICMP errors were sent: " << status.text();
  // A port that nobody serves: the kernel answers, so the counter works.
  {
    const NetworkNamespace::Inside inside(*spaces_[1]);
    status = spaces_[1]->Run("echo x > /dev/udp/" +
                             std::string(GetParam() ? "10.9.0.1" : "fd09::1") + "/4792");
    if (!status.ok()) {
      status = spaces_[1]->Run("bash -c 'echo x > /dev/udp/" +
                               std::string(GetParam() ? "10.9.0.1" : "fd09::1") + "/4792'");
    }
    ASSERT_TRUE(status.ok()) << status.text();
  }
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!(status = spaces_[0]->Run(count + "1")).ok() &&
         std::chrono::steady_clock::now() < deadline) {
  }
  EXPECT_TRUE(status.ok()) << status.text();
}

TEST_P(DpdkVethTest, Unreachable_IsLostAtOnceAndNewRoutesAreSeen) {
  const auto dpdk = OpenDpdk();
  const auto udp = OpenUdp();
  ASSERT_TRUE(dpdk != nullptr && udp != nullptr);
  PacketPort& port = dpdk->queue(0);
  wire::Path far = PathBetween(1, 2, GetParam());
  far.destination = GetParam() ? wire::Gid::FromV4(0xC0000207) : TestAddress(7, false);
  if (!GetParam()) far.destination.bytes[1] = 0x77;
  Send(0, port, far, 3, 64);
  EXPECT_EQ(port.counters().tx_lost.Read(), 3U);
  const std::string address = GetParam() ? "192.0.2.7" : "fd77::7";
  const std::string prefix = GetParam() ? "192.0.2.0/24" : "fd77::/64";
  const std::string via = GetParam() ? "10.9.0.2" : "fd09::2";
  ASSERT_TRUE(spaces_[1]->Run("ip addr add " + address + " dev lo").ok());
  ASSERT_TRUE(spaces_[0]->Run("ip route add " + prefix + " via " + via).ok());
  // The kernel's news take a moment; what is sent before is lost or waits.
  std::vector<Received> got;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (got.empty() && std::chrono::steady_clock::now() < deadline) {
    Send(0, port, far, 1, 64);
    got = ReceiveAll(udp->queue(0));
  }
  ASSERT_FALSE(got.empty());
  EXPECT_EQ(got[0].meta.destination, far.destination);
}

TEST_P(DpdkVethTest, Frames_WakeWhoWaitsForThem) {
  const auto dpdk = OpenDpdk(2);
  const auto udp = OpenUdp();
  ASSERT_TRUE(dpdk != nullptr && udp != nullptr);
  pollfd fds[] = {{dpdk->queue(0).wake_fd(), POLLIN, 0}, {dpdk->queue(1).wake_fd(), POLLIN, 0}};
  ASSERT_GE(fds[0].fd, 0);
  ASSERT_GE(fds[1].fd, 0);
  ASSERT_NE(fds[0].fd, fds[1].fd);
  TakeEarlyFrames(*dpdk);
  EXPECT_EQ(poll(fds, 2, 0), 0);
  // Several flows, so that the kernel spreads them over both.
  bool woken[2] = {};
  for (uint16_t flow = 0; flow < 64 && !(woken[0] && woken[1]); ++flow) {
    wire::Path path = PathBetween(2, 1, GetParam());
    path.source_port = static_cast<uint16_t>(0xC100 + flow);
    Send(1, udp->queue(0), path, 1, 64);
    ASSERT_EQ(poll(fds, 2, static_cast<int>(std::chrono::milliseconds(kPatience).count())), 1);
    const size_t queue = fds[0].revents != 0 ? 0 : 1;
    woken[queue] = true;
    EXPECT_EQ(ReceiveAll(dpdk->queue(queue)).size(), 1U);
    EXPECT_EQ(poll(fds, 2, 0), 0);
  }
  EXPECT_TRUE(woken[0] && woken[1]);
}

TEST_P(DpdkVethTest, OtherTraffic_DoesNotReachTheQueue) {
  const auto dpdk = OpenDpdk();
  const auto udp = OpenUdp();
  ASSERT_TRUE(dpdk != nullptr && udp != nullptr);
  TakeEarlyFrames(*dpdk);
  const uint64_t early = dpdk->queue(0).counters().rx_not_roce.Read();
  {
    const NetworkNamespace::Inside inside(*spaces_[1]);
    const std::string to = GetParam() ? "10.9.0.1" : "fd09::1";
    ASSERT_TRUE(spaces_[1]->Run("bash -c 'echo x > /dev/udp/" + to + "/4792'").ok());
  }
  Send(1, udp->queue(0), PathBetween(2, 1, GetParam()), 5, 64);
  EXPECT_EQ(Poll(dpdk->queue(0), 5).size(), 5U);
  EXPECT_EQ(dpdk->queue(0).counters().rx_not_roce.Read(), early);
}

TEST_P(DpdkVethTest, AddressAddedLater_IsOwn) {
  const auto dpdk = OpenDpdk();
  const auto udp = OpenUdp();
  ASSERT_TRUE(dpdk != nullptr && udp != nullptr);
  const wire::Path path = PathBetween(2, 9, GetParam());
  const std::string address = GetParam() ? "10.9.0.9/24" : "fd09::9/64 nodad";
  ASSERT_TRUE(spaces_[0]->Run("ip addr add " + address + " dev " + interface_).ok());
  std::vector<Received> got;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (got.empty() && std::chrono::steady_clock::now() < deadline) {
    Send(1, udp->queue(0), path, 1, 64);
    got = ReceiveAll(dpdk->queue(0));
  }
  ASSERT_FALSE(got.empty());
  EXPECT_EQ(got[0].meta.destination, path.destination);
}

TEST_P(DpdkVethTest, ForeignDestination_IsNotTaken) {
  const auto dpdk = OpenDpdk();
  const auto udp = OpenUdp();
  ASSERT_TRUE(dpdk != nullptr && udp != nullptr);
  // The second host sends to an address that the first one is told to forward.
  const std::string address = GetParam() ? "10.9.0.66" : "fd09::42";
  ASSERT_TRUE(spaces_[1]
                  ->Run("ip neigh add " + address + " lladdr 02:09:00:00:00:01 dev " + interface_)
                  .ok());
  Send(1, udp->queue(0), PathBetween(2, 66, GetParam()), 4, 64);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (dpdk->queue(0).counters().rx_not_roce.Read() < 4 &&
         std::chrono::steady_clock::now() < deadline) {
    EXPECT_TRUE(ReceiveAll(dpdk->queue(0)).empty());
  }
  EXPECT_GE(dpdk->queue(0).counters().rx_not_roce.Read(), 4U);
}

TEST_P(DpdkVethTest, TwoWorkers_ReceiveOnTwoQueuesBetweenThem) {
  const auto dpdk = OpenDpdk(2);
  const auto udp = OpenUdp();
  ASSERT_TRUE(dpdk != nullptr && udp != nullptr);
  EXPECT_EQ(dpdk->receive_queues(), 2U);
  constexpr uint32_t kFlows = 32;
  for (uint32_t flow = 0; flow < kFlows; ++flow) {
    wire::Path path = PathBetween(2, 1, GetParam());
    path.source_port = static_cast<uint16_t>(0xC000 + flow);
    Send(1, udp->queue(0), path, 2, 256);
  }
  std::vector<Received> got[2];
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (got[0].size() + got[1].size() < 2 * kFlows &&
         std::chrono::steady_clock::now() < deadline) {
    for (size_t queue = 0; queue < 2; ++queue) {
      for (auto& one : ReceiveAll(dpdk->queue(queue))) got[queue].push_back(std::move(one));
    }
  }
  EXPECT_EQ(got[0].size() + got[1].size(), 2 * kFlows);
  EXPECT_GT(got[0].size(), 0U);
  EXPECT_GT(got[1].size(), 0U);
  // Both transmit.
  for (size_t queue = 0; queue < 2; ++queue) {
    Send(0, dpdk->queue(queue), PathBetween(1, 2, GetParam()), 5, 256);
    EXPECT_EQ(Poll(udp->queue(0), 5).size(), 5U);
  }
}

TEST_P(DpdkVethTest, SecondGateway_IsRefused) {
  const auto dpdk = OpenDpdk();
  ASSERT_NE(dpdk, nullptr);
  const NetworkNamespace::Inside inside(*spaces_[0]);
  const auto second = UdpPortGroup::Create({.interfaces = {interface_}}, SteeringTable(1));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().error(), EADDRINUSE);
}

TEST(KernelNeighbours_Create, UnknownInterfaceIsNamed) {
  const auto link = KernelNeighbours::Create("nosuch0");
  ASSERT_FALSE(link.ok());
  EXPECT_NE(link.status().text().find("nosuch0"), std::string::npos);
}

}  // namespace
}  // namespace rocegw::port
