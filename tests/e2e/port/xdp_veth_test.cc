// SPDX-License-Identifier: Apache-2.0
// The af_xdp port mode on a veth pair shared with the kernel, against the udp port mode on the
// other side. Needs root.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gateway/base/unique_fd.h"
#include "gateway/port/kernel/interface_features.h"
#include "gateway/port/kernel/local_address.h"
#include "gateway/port/neighbour/own_neighbours.h"
#include "gateway/port/xdp/xdp_port.h"
#include "gateway/port/xdp/xdp_program.h"
#include "gateway/port/xdp/xdp_queue.h"
#include "gateway/port/xdp/xdp_socket.h"
#include "gateway/port/xdp/xdp_transmitter.h"
#include "tests/support/network/network_namespace.h"
#include "tests/support/network/port_fixture.h"
#include "tests/support/network/veth_test.h"

namespace rocegw::port {
namespace {

using rocegw::testing::kTestHeader;
using rocegw::testing::NetworkNamespace;
using rocegw::testing::PathBetween;
using rocegw::testing::ReceiveAll;
using rocegw::testing::Received;
using rocegw::testing::TestAddress;

constexpr size_t kXdpMtu = 4200;
constexpr auto kXdpPatience = rocegw::testing::kVethPatience;
constexpr int kXdpPatienceMs = std::chrono::milliseconds(kXdpPatience).count();

class XdpVethTest : public rocegw::testing::VethTest {
 protected:
  XdpVethTest() : VethTest(kXdpMtu) {}

  StatusOr<std::unique_ptr<XdpPortGroup>> TryXdp(const std::string& interface, size_t workers = 1) {
    const NetworkNamespace::Inside inside(*spaces_[0]);
    return XdpPortGroup::Create(
        {.interface = interface, .packets_per_queue = 128, .receive_buffers = 512},
        SteeringTable(workers));
  }

  std::unique_ptr<XdpPortGroup> OpenXdp(size_t workers = 1) {
    auto group = TryXdp(interface_, workers);
    EXPECT_TRUE(group.ok()) << group.status().text();
    return group.ok() ? std::move(*group) : nullptr;
  }

  // Returns a kernel socket of either address family on that UDP port.
  UniqueFd Listen(size_t side, uint16_t udp_port) {
    const NetworkNamespace::Inside inside(*spaces_[side]);
    UniqueFd fd(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(udp_port);
    if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) fd.Reset();
    return fd;
  }

  bool HasProgram() {
    return spaces_[0]->Run("ip link show dev " + interface_ + " | grep -q xdp").ok();
  }
};

INSTANTIATE_TEST_SUITE_P(Families, XdpVethTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "IPv4" : "IPv6"; });

TEST(XdpPortGroupTest, LockedMemory_IsThePacketMemory) {
  EXPECT_EQ(XdpPortGroup::LockedMemory({}, 1, 1500), 12U << 20);
  EXPECT_EQ(XdpPortGroup::LockedMemory({}, 2, 4200), 32U << 20);
}

TEST_P(XdpVethTest, BothWays_WithTheKernelsNeighbours) {
  const auto xdp = OpenXdp();
  const auto udp = OpenUdp();
  ASSERT_TRUE(xdp != nullptr && udp != nullptr);
  // The kernel does not know the neighbour yet: the first packets wait. Payloads of 4096 bytes are
  // longer than a chunk of packet memory.
  for (const size_t payload : {64U, 1024U, 4096U}) {
    const wire::Path there = PathBetween(1, 2, GetParam());
    Send(0, xdp->queue(0), there, 40, payload);
    ExpectWhole(Poll(udp->queue(0), 40), there, 40);
    const wire::Path back = PathBetween(2, 1, GetParam());
    Send(1, udp->queue(0), back, 30, payload);
    const auto got = Poll(xdp->queue(0), 30);
    ExpectWhole(got, back, 30);
    for (const Received& received : got) EXPECT_EQ(received.meta.ip_id_known, GetParam());
  }
  EXPECT_EQ(xdp->queue(0).counters().tx_lost.Read(), 0U);
  EXPECT_EQ(xdp->queue(0).counters().rx_malformed.Read(), 0U);
}

TEST_P(XdpVethTest, Frames_OfOneChunkToSendAndTwoToReceive) {
  for (auto& space : spaces_)
    ASSERT_TRUE(space->Run("ip link set dev " + interface_ + " mtu 3900").ok());
  const auto xdp = OpenXdp();
  const auto udp = OpenUdp();
  ASSERT_TRUE(xdp != nullptr && udp != nullptr);
  // The longest payload: full frames of this MTU.
  const size_t payload = 3900 - IpUdpLength(TestAddress(1, GetParam())) - kTestHeader - 4;
  const wire::Path there = PathBetween(1, 2, GetParam());
  Send(0, xdp->queue(0), there, 40, payload);
  ExpectWhole(Poll(udp->queue(0), 40), there, 40);
  const wire::Path back = PathBetween(2, 1, GetParam());
  Send(1, udp->queue(0), back, 40, payload);
  ExpectWhole(Poll(xdp->queue(0), 40), back, 40);
  EXPECT_EQ(xdp->queue(0).counters().rx_malformed.Read(), 0U);
}

TEST_P(XdpVethTest, Buffers_AreReused) {
  const auto xdp = OpenXdp();
  const auto udp = OpenUdp();
  ASSERT_TRUE(xdp != nullptr && udp != nullptr);
  // Several times as many packets as there are buffers of either direction.
  const wire::Path there = PathBetween(1, 2, GetParam());
  const wire::Path back = PathBetween(2, 1, GetParam());
  for (int round = 0; round < 20; ++round) {
    Send(0, xdp->queue(0), there, 100, 2048);
    ASSERT_EQ(Poll(udp->queue(0), 100).size(), 100U);
    Send(1, udp->queue(0), back, 100, 4096);
    ASSERT_EQ(Poll(xdp->queue(0), 100).size(), 100U);
  }
}

TEST_P(XdpVethTest, OtherTraffic_StaysTheKernels) {
  const auto xdp = OpenXdp();
  const auto udp = OpenUdp();
  ASSERT_TRUE(xdp != nullptr && udp != nullptr);
  const std::string first = GetParam() ? "10.9.0.1" : "fd09::1";
  // The kernel answers a SYN to a port that no program serves.
  const Status refused =
      spaces_[1]->Run("timeout 5 bash -c 'echo x > /dev/tcp/" + first + "/9' 2>&1");
  EXPECT_NE(refused.text().find("refused"), std::string::npos) << refused.text();
  // Another UDP port does not reach the queue, nor does 4791 at a foreign address.
  const std::string foreign = GetParam() ? "10.9.0.66" : "fd09::42";
  ASSERT_TRUE(spaces_[1]
                  ->Run("ip neigh add " + foreign + " lladdr 02:09:00:00:00:01 dev " + interface_)
                  .ok());
  const uint16_t other = wire::kRocePort + 1;
  const UniqueFd listening = Listen(0, other);
  ASSERT_TRUE(listening.valid());
  ASSERT_TRUE(spaces_[1]
                  ->Run("bash -c 'echo x > /dev/udp/" + first + "/" + std::to_string(other) + "'")
                  .ok());
  pollfd arrives{listening.get(), POLLIN, 0};
  ASSERT_EQ(poll(&arrives, 1, kXdpPatienceMs), 1);
  char text[8] = {};
  EXPECT_EQ(recv(listening.get(), text, sizeof text, MSG_DONTWAIT), 2);
  EXPECT_EQ(text[0], 'x');
  Send(1, udp->queue(0), PathBetween(2, 66, GetParam()), 4, 64);
  Send(1, udp->queue(0), PathBetween(2, 1, GetParam()), 5, 64);
  EXPECT_EQ(Poll(xdp->queue(0), 5).size(), 5U);
  EXPECT_EQ(xdp->queue(0).counters().rx_not_roce.Read(), 0U);
}

TEST_P(XdpVethTest, Frames_WakeTheirWorkerOnly) {
  const auto xdp = OpenXdp(2);
  const auto udp = OpenUdp();
  ASSERT_TRUE(xdp != nullptr && udp != nullptr);
  ASSERT_EQ(xdp->queues(), 2U);
  pollfd fds[] = {{xdp->queue(0).wake_fd(), POLLIN, 0}, {xdp->queue(1).wake_fd(), POLLIN, 0}};
  EXPECT_EQ(poll(fds, 2, 0), 0);
  // The interface has one receive queue, which belongs to the first worker.
  Send(1, udp->queue(0), PathBetween(2, 1, GetParam()), 1, 64);
  ASSERT_EQ(poll(fds, 2, kXdpPatienceMs), 1);
  EXPECT_NE(fds[0].revents, 0);
  EXPECT_EQ(Poll(xdp->queue(0), 1).size(), 1U);
  EXPECT_EQ(poll(fds, 2, 0), 0);
}

TEST_P(XdpVethTest, MoreWorkersThanQueues_AllSend) {
  const auto xdp = OpenXdp(3);
  const auto udp = OpenUdp();
  ASSERT_TRUE(xdp != nullptr && udp != nullptr);
  const wire::Path there = PathBetween(1, 2, GetParam());
  for (int round = 0; round < 4; ++round) {
    for (size_t queue = 0; queue < 3; ++queue) {
      Send(0, xdp->queue(queue), there, 50, 4096);
      ExpectWhole(Poll(udp->queue(0), 50), there, 50);
    }
  }
}

TEST_P(XdpVethTest, MoreQueuesThanWorkers_NoFrameIsMissed) {
  // Received frames of several flows come on several queues.
  for (size_t side = 0; side < 2; ++side)
    ASSERT_TRUE(spaces_[side]->Run("ethtool -L " + interface_ + " rx 2 tx 2").ok());
  const auto xdp = OpenXdp();
  const auto udp = OpenUdp();
  ASSERT_TRUE(xdp != nullptr && udp != nullptr);
  for (uint16_t flow = 0; flow < 32; ++flow) {
    wire::Path path = PathBetween(2, 1, GetParam());
    path.source_port = static_cast<uint16_t>(0xC100 + flow);
    Send(1, udp->queue(0), path, 2, 256);
  }
  EXPECT_EQ(Poll(xdp->queue(0), 64).size(), 64U);
}

TEST_P(XdpVethTest, MoreReceiveThanTransmitQueues_AllWorkersSend) {
  ASSERT_TRUE(spaces_[0]->Run("ethtool -L " + interface_ + " rx 2 tx 1").ok());
  const auto xdp = OpenXdp(2);
  const auto udp = OpenUdp();
  ASSERT_TRUE(xdp != nullptr && udp != nullptr);
  const wire::Path there = PathBetween(1, 2, GetParam());
  for (size_t queue = 0; queue < 2; ++queue) {
    Send(0, xdp->queue(queue), there, 20, 1024);
    ExpectWhole(Poll(udp->queue(0), 20), there, 20);
  }
}

TEST_P(XdpVethTest, DriverWithoutChannels_EveryQueueIsServed) {
  ASSERT_TRUE(spaces_[0]->Run("ip link add mute0 up numrxqueues 4 numtxqueues 4 type bridge").ok());
  {
    const NetworkNamespace::Inside inside(*spaces_[0]);
    const InterfaceQueues queues = ReadQueues("mute0");
    EXPECT_TRUE(queues.allocated);
    EXPECT_EQ(queues.receive, 4U);
    EXPECT_EQ(queues.transmit, 1U);
  }
  const auto xdp = TryXdp("mute0", 2);
  EXPECT_TRUE(xdp.ok()) << xdp.status().text();
}

// The neighbours are fixed: the kernel's are forgotten when the interface goes down.
TEST_P(XdpVethTest, InterfaceDownWithAFullRing_SendsWhenItIsUp) {
  constexpr size_t kPackets = 64;
  const auto udp = OpenUdp();
  ASSERT_NE(udp, nullptr);
  std::vector<InterfaceInfo> sides;
  for (size_t side = 0; side < 2; ++side) {
    const NetworkNamespace::Inside inside(*spaces_[side]);
    auto info = ReadInterface(interface_);
    ASSERT_TRUE(info.ok());
    sides.push_back(std::move(*info));
  }
  const auto own = TestAddress(1, GetParam());
  OwnNeighbours link(sides[0].mac,
                     {.addresses = {{own, static_cast<uint8_t>(GetParam() ? 24 : 64), false}},
                      .router_ipv4 = {},
                      .router_ipv6 = {},
                      .neighbours = {{TestAddress(2, GetParam()), sides[1].mac}}});
  auto memory = XdpMemory::Map(kPackets * kXdpChunk);
  ASSERT_TRUE(memory.ok());
  const XdpSocketConfig config{.interface_index = sides[0].index,
                               .interface = interface_,
                               .memory = &*memory,
                               .transmit_chunks = kPackets};
  std::unique_ptr<XdpSocket> socket;
  {
    const NetworkNamespace::Inside inside(*spaces_[0]);
    auto opened = XdpSocket::Open(config);
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    socket = std::move(*opened);
    const Status bound = socket->Bind(config);
    ASSERT_TRUE(bound.ok()) << bound.text();
  }
  XdpTransmitter transmitter(*socket,
                             {.begin = 0, .bytes_per_worker = memory->size(), .workers = 1}, false);
  XdpQueue queue({.memory = &*memory,
                  .receivers = {},
                  .transmitter = &transmitter,
                  .packets = kPackets,
                  .max_datagram = 1024,
                  .link = &link});
  ASSERT_TRUE(spaces_[0]->Run("ip link set dev " + interface_ + " down").ok());
  const wire::Path there = PathBetween(1, 2, GetParam());
  Send(0, queue, there, kPackets, 64);
  EXPECT_EQ(queue.Acquire(), nullptr);
  ASSERT_TRUE(spaces_[0]->Run("ip link set dev " + interface_ + " up").ok());
  const auto deadline = std::chrono::steady_clock::now() + kXdpPatience;
  std::vector<Received> got;
  while (got.size() < 2 * kPackets && std::chrono::steady_clock::now() < deadline) {
    TxPacket* const packet = queue.Acquire();
    if (packet != nullptr) {
      queue.Release(packet);
      Send(0, queue, there, 1, 64);
    }
    for (auto& received : ReceiveAll(udp->queue(0))) got.push_back(std::move(received));
  }
  EXPECT_GE(got.size(), 2 * kPackets);
}

TEST_P(XdpVethTest, AddressAddedLater_IsOwn) {
  const auto xdp = OpenXdp();
  const auto udp = OpenUdp();
  ASSERT_TRUE(xdp != nullptr && udp != nullptr);
  const wire::Path path = PathBetween(2, 9, GetParam());
  const std::string address = GetParam() ? "10.9.0.9/24" : "fd09::9/64 nodad";
  ASSERT_TRUE(spaces_[0]->Run("ip addr add " + address + " dev " + interface_).ok());
  std::vector<Received> got;
  const auto deadline = std::chrono::steady_clock::now() + kXdpPatience;
  while (got.empty() && std::chrono::steady_clock::now() < deadline) {
    Send(1, udp->queue(0), path, 1, 64);
    got = ReceiveAll(xdp->queue(0));
  }
  ASSERT_FALSE(got.empty());
  EXPECT_EQ(got[0].meta.destination, path.destination);
}

TEST_P(XdpVethTest, Shortcomings_AreNamed) {
  auto xdp = OpenXdp();
  ASSERT_NE(xdp, nullptr);
  EXPECT_NE(xdp->Shortcoming().find("an MTU above 3826"), std::string::npos) << xdp->Shortcoming();
  xdp.reset();
  ASSERT_TRUE(spaces_[0]->Run("ip link set dev " + interface_ + " mtu 1500").ok());
  xdp = OpenXdp();
  ASSERT_NE(xdp, nullptr);
  EXPECT_NE(xdp->Shortcoming().find("copy mode"), std::string::npos);
  EXPECT_EQ(xdp->Shortcoming().find("MTU"), std::string::npos) << xdp->Shortcoming();
  xdp.reset();
  ASSERT_TRUE(spaces_[0]->Run("ip link set dev " + interface_ + " mtu 9500").ok());
  xdp = OpenXdp();
  ASSERT_NE(xdp, nullptr);
  EXPECT_EQ(xdp->frame_mtu(), 9216U);
  EXPECT_NE(xdp->Shortcoming().find("9216, the largest"), std::string::npos) << xdp->Shortcoming();
  xdp.reset();
  // A bridge has no XDP of its own.
  ASSERT_TRUE(spaces_[0]->Run("ip link add mute0 up mtu 1500 type bridge").ok());
  auto generic = TryXdp("mute0");
  ASSERT_TRUE(generic.ok()) << generic.status().text();
  EXPECT_NE((*generic)->Shortcoming().find("generic path"), std::string::npos);
}

TEST_P(XdpVethTest, Program_LeavesWithItsPort) {
  EXPECT_FALSE(HasProgram());
  auto xdp = OpenXdp();
  ASSERT_NE(xdp, nullptr);
  EXPECT_TRUE(HasProgram());
  xdp.reset();
  EXPECT_FALSE(HasProgram());
}

TEST_P(XdpVethTest, QueueOfAClosingSocket_IsAwaited) {
  auto memory = XdpMemory::Map(64 * kXdpChunk);
  ASSERT_TRUE(memory.ok());
  std::unique_ptr<XdpSocket> other;
  {
    const NetworkNamespace::Inside inside(*spaces_[0]);
    auto info = ReadInterface(interface_);
    ASSERT_TRUE(info.ok());
    const XdpSocketConfig config{
        .interface_index = info->index, .interface = interface_, .memory = &*memory};
    auto opened = XdpSocket::Open(config);
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    other = std::move(*opened);
    ASSERT_TRUE(other->Bind(config).ok());
  }
  // The port binds its sockets as soon as its program is attached.
  std::thread closing([&] {
    const auto deadline = std::chrono::steady_clock::now() + kXdpPatience;
    while (!HasProgram() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    other.reset();
  });
  const auto xdp = TryXdp(interface_);
  closing.join();
  EXPECT_TRUE(xdp.ok()) << xdp.status().text();
}

TEST_P(XdpVethTest, ForeignProgram_IsRefusedByName) {
  auto foreign = XdpProgram::Load(4790);
  ASSERT_TRUE(foreign.ok()) << foreign.status().text();
  {
    const NetworkNamespace::Inside inside(*spaces_[0]);
    auto info = ReadInterface(interface_);
    ASSERT_TRUE(info.ok());
    ASSERT_TRUE(foreign->Attach(interface_, info->index).ok());
  }
  const auto xdp = TryXdp(interface_);
  ASSERT_FALSE(xdp.ok());
  EXPECT_NE(xdp.status().text().find("another XDP program"), std::string::npos)
      << xdp.status().text();
}

TEST_P(XdpVethTest, Interfaces_ThatItCannotServe) {
  auto xdp = TryXdp("nosuch0");
  ASSERT_FALSE(xdp.ok());
  EXPECT_NE(xdp.status().text().find("nosuch0"), std::string::npos);
  xdp = TryXdp("lo");
  ASSERT_FALSE(xdp.ok());
  EXPECT_NE(xdp.status().text().find("loopback"), std::string::npos) << xdp.status().text();
  ASSERT_TRUE(spaces_[0]->Run("ip tuntap add dev tun0 mode tun").ok());
  xdp = TryXdp("tun0");
  ASSERT_FALSE(xdp.ok());
  EXPECT_NE(xdp.status().text().find("no Ethernet"), std::string::npos) << xdp.status().text();
}

}  // namespace
}  // namespace rocegw::port
