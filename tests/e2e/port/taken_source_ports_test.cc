// SPDX-License-Identifier: Apache-2.0
// The udp port mode beside a program that takes every UDP source port of the host. Needs root: the
// ports are those of a network namespace of the test.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gateway/port/udp/udp_port.h"
#include "gateway/wire/crc/icrc.h"
#include "tests/support/network/network_namespace.h"
#include "tests/support/network/port_fixture.h"

namespace rocegw::port::taken_source_ports {
namespace {

using rocegw::testing::IsTestPacket;
using rocegw::testing::Loopback;
using rocegw::testing::NetworkNamespace;
using rocegw::testing::ReceiveCount;
using rocegw::testing::SendTestPacket;

constexpr uint16_t kFirstPort = 0xC000;
constexpr size_t kPorts = 0x4000;
constexpr Qpn kQpn{0x12};

// Every port from 0xC000 on that is free, for IPv4 and IPv6.
std::vector<UniqueFd> TakeSourcePorts() {
  rlimit files{};
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_GT(files.rlim_max, kPorts + 1000) << "the test needs more open files (ulimit -Hn)";
  std::vector<UniqueFd> taken;
  for (size_t i = 0; i < kPorts; ++i) {
    UniqueFd fd(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<uint16_t>(kFirstPort + i));
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
      taken.push_back(std::move(fd));
  }
  return taken;
}

std::unique_ptr<UdpPortGroup> MakeGroup() {
  auto group = UdpPortGroup::Create(
      {.interfaces = {"lo"}, .max_datagram = 4152, .refuse_foreign_loopback = true},
      SteeringTable(1));
  EXPECT_TRUE(group.ok()) << group.status().text();
  return group.ok() ? std::move(*group) : nullptr;
}

class TakenSourcePorts : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto created = NetworkNamespace::Create();
    ASSERT_TRUE(created.ok()) << created.status().text();
    namespace_ = std::make_unique<NetworkNamespace>(std::move(*created));
    inside_ = std::make_unique<NetworkNamespace::Inside>(*namespace_);
  }

  // Sends packets of many flows and expects each, with a sound ICRC. Returns their source ports.
  std::vector<uint16_t> ExpectEachFlow(UdpPort& port, uint8_t path_hash) {
    std::vector<uint16_t> source_ports;
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      const Qpn to{bucket << kBucketShift};
      const wire::Path path{.source = Loopback(GetParam()),
                            .destination = Loopback(GetParam()),
                            .source_port = SourcePort(path_hash, to),
                            .hop_limit = 33};
      EXPECT_TRUE(SendTestPacket(port, path, kQpn, bucket, 2000));
      const auto got = ReceiveCount(port, 1);
      if (got.size() != 1) {
        ADD_FAILURE() << "no packet of bucket " << bucket;
        break;
      }
      uint16_t id = 1;
      EXPECT_TRUE(wire::VerifyIcrc(got[0].meta, got[0].bytes, &id));
      EXPECT_TRUE(IsTestPacket(got[0].bytes));
      EXPECT_EQ(id, 0);
      source_ports.push_back(got[0].meta.source_port);
    }
    return source_ports;
  }

 private:
  std::unique_ptr<NetworkNamespace> namespace_;
  std::unique_ptr<NetworkNamespace::Inside> inside_;
};
INSTANTIATE_TEST_SUITE_P(Families, TakenSourcePorts, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "IPv4" : "IPv6"; });

TEST_P(TakenSourcePorts, WhileTheGatewayRuns_FlowsLeaveFromTheirBucketsReservedPort) {
  const auto group = MakeGroup();
  ASSERT_NE(group, nullptr);
  const auto taken = TakeSourcePorts();
  ASSERT_EQ(taken.size(), kPorts - kBuckets);
  const std::vector<uint16_t> ports = ExpectEachFlow(group->queue(0), 7);
  ASSERT_EQ(ports.size(), kBuckets);
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    EXPECT_EQ(ports[bucket] % kBuckets, bucket);
    EXPECT_NE(ports[bucket], SourcePort(7, Qpn{static_cast<uint32_t>(bucket) << kBucketShift}));
  }
  EXPECT_EQ(ExpectEachFlow(group->queue(0), 8), ports);
  EXPECT_EQ(group->queue(0).counters().tx_lost.Read(), 0U);
  EXPECT_EQ(group->queue(0).counters().rx_foreign_loopback.Read(), 0U);
}

TEST_P(TakenSourcePorts, BeforeTheGatewayStarts_FlowsLeaveFromTheServicesPort) {
  auto taken = TakeSourcePorts();
  ASSERT_EQ(taken.size(), kPorts);
  const auto group = MakeGroup();
  ASSERT_NE(group, nullptr);
  UdpPort& port = group->queue(0);
  EXPECT_EQ(ExpectEachFlow(port, 7), std::vector<uint16_t>(kBuckets, wire::kRocePort));
  EXPECT_EQ(port.counters().tx_lost.Read(), 0U);
  EXPECT_EQ(port.counters().rx_foreign_loopback.Read(), 0U);
  EXPECT_EQ(port.counters().tx_source_ports_taken.Read(), kBuckets);

  // A flow of a bucket that was searched in vain is not searched for again at once.
  const auto began = std::chrono::steady_clock::now();
  constexpr int kRepeats = 1000;
  const wire::Path path{
      .source = Loopback(GetParam()), .destination = Loopback(GetParam()), .source_port = 0xC900};
  for (int i = 0; i < kRepeats; ++i) ASSERT_TRUE(SendTestPacket(port, path, kQpn, 0, 8));
  const auto each = (std::chrono::steady_clock::now() - began) / kRepeats;
  EXPECT_LT(each, std::chrono::microseconds(100));
  EXPECT_LE(port.counters().tx_source_ports_taken.Read(), kBuckets + 2);
}

TEST_P(TakenSourcePorts, WhenTheyAreFreeAgain_FlowsHaveTheirOwn) {
  auto taken = TakeSourcePorts();
  const auto group = MakeGroup();
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(ExpectEachFlow(group->queue(0), 7), std::vector<uint16_t>(kBuckets, wire::kRocePort));
  taken.clear();
  std::vector<uint16_t> wanted;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket)
    wanted.push_back(SourcePort(7, Qpn{bucket << kBucketShift}));
  // Flows search again after a while.
  std::vector<uint16_t> ports;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (ports != wanted && !HasFailure() && std::chrono::steady_clock::now() < deadline)
    ports = ExpectEachFlow(group->queue(0), 7);
  EXPECT_EQ(ports, wanted);
}

// Ports that the system keeps for programs with CAP_NET_BIND_SERVICE, as security.md advises.
class KeptPort : public ::testing::Test {
 protected:
  void SetUp() override {
    auto created = NetworkNamespace::Create();
    ASSERT_TRUE(created.ok()) << created.status().text();
    namespace_ = std::make_unique<NetworkNamespace>(std::move(*created));
    ASSERT_TRUE(namespace_
                    ->Run("ip link set lo up && echo 4792 > "
                          "/proc/sys/net/ipv4/ip_unprivileged_port_start")
                    .ok());
  }

  // Binds UDP 4791 on a thread of its own, with or without the capability.
  Status Bind(bool capable) const {
    Status status = OkStatus();
    std::thread([&] {
      const NetworkNamespace::Inside inside(*namespace_);
      __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
      __user_cap_data_struct data[2]{};
      EXPECT_EQ(syscall(SYS_capget, &header, data), 0);
      if (!capable) data[0].effective &= ~(1U << CAP_NET_BIND_SERVICE);
      EXPECT_EQ(syscall(SYS_capset, &header, data), 0);
      status = UdpPortGroup::Create({.interfaces = {"lo"}, .max_datagram = 4152}, SteeringTable(1))
                   .status();
    }).join();
    return status;
  }

  std::unique_ptr<NetworkNamespace> namespace_;
};

TEST_F(KeptPort, GatewayWithTheCapability_HasThePort) {
  const Status status = Bind(true);
  EXPECT_TRUE(status.ok()) << status.text();
}

TEST_F(KeptPort, ProgramWithoutTheCapability_IsRefusedWithARemedy) {
  const Status status = Bind(false);
  EXPECT_EQ(status.error(), EACCES);
  EXPECT_NE(status.text().find("the gateway needs CAP_NET_BIND_SERVICE"), std::string::npos)
      << status.text();
}

}  // namespace
}  // namespace rocegw::port::taken_source_ports
