// SPDX-License-Identifier: Apache-2.0
// Fixture of two network namespaces joined by a veth pair, with the port under test in the first
// and a port on kernel sockets in the second. The parameter is true for IPv4. Needs root.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gateway/port/udp/udp_port.h"
#include "gateway/wire/crc/icrc.h"
#include "tests/support/network/network_namespace.h"
#include "tests/support/network/port_fixture.h"

namespace rocegw::testing {

inline constexpr Qpn kVethQpn{0x12};
inline constexpr auto kVethPatience = std::chrono::seconds(5);

inline wire::Path PathBetween(uint8_t from, uint8_t to, bool ipv4) {
  return {.source = TestAddress(from, ipv4),
          .destination = TestAddress(to, ipv4),
          .source_port = 0xC111,
          .traffic_class = 0x6A,
          .hop_limit = 64};
}

class VethTest : public ::testing::TestWithParam<bool> {
 protected:
  explicit VethTest(unsigned mtu) : mtu_(mtu) {}

  void SetUp() override {
    // A name of its own per test: DPDK devices are known by it.
    static int number = 0;
    interface_ = "veth" + std::to_string(number++);
    for (auto& space : spaces_) {
      auto created = NetworkNamespace::Create();
      ASSERT_TRUE(created.ok()) << created.status().text();
      space.emplace(std::move(*created));
    }
    const Status status = JoinByVeth(*spaces_[0], *spaces_[1], interface_, mtu_);
    ASSERT_TRUE(status.ok()) << status.text();
  }

  std::unique_ptr<port::UdpPortGroup> OpenUdp() {
    const NetworkNamespace::Inside inside(*spaces_[1]);
    auto group = port::UdpPortGroup::Create({.interfaces = {interface_}}, port::SteeringTable(1));
    EXPECT_TRUE(group.ok()) << group.status().text();
    return group.ok() ? std::move(*group) : nullptr;
  }

  // In the namespace of the sender: sockets for source ports are opened on the way.
  void Send(size_t side, port::PacketPort& port, const wire::Path& path, uint32_t count,
            size_t payload, Qpn qpn = kVethQpn) {
    const NetworkNamespace::Inside inside(*spaces_[side]);
    for (uint32_t psn = 0; psn < count; ++psn) {
      port::TxPacket* packet = port.Acquire();
      ASSERT_NE(packet, nullptr);
      packet->path = path;
      packet->length = static_cast<uint32_t>(WriteTestPacket(qpn, psn, payload, packet->data));
      ASSERT_EQ(port.Transmit({&packet, 1}), 1U);
    }
    FlushAll(port);
  }

  static void FlushAll(port::PacketPort& port) {
    const auto deadline = std::chrono::steady_clock::now() + kVethPatience;
    while (!port.Flush() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  }

  static std::vector<Received> Poll(port::PacketPort& port, size_t count) {
    std::vector<Received> got;
    const auto deadline = std::chrono::steady_clock::now() + kVethPatience;
    while (got.size() < count && std::chrono::steady_clock::now() < deadline) {
      for (auto& received : ReceiveAll(port)) got.push_back(std::move(received));
      std::this_thread::yield();
    }
    return got;
  }

  static void ExpectWhole(const std::vector<Received>& got, const wire::Path& path, size_t count) {
    ASSERT_EQ(got.size(), count);
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(PsnOf(got[i].bytes), i);
      EXPECT_TRUE(IsTestPacket(got[i].bytes));
      EXPECT_EQ(got[i].meta.source, path.source);
      EXPECT_EQ(got[i].meta.destination, path.destination);
      EXPECT_EQ(got[i].meta.source_port, path.source_port);
      EXPECT_EQ(got[i].meta.traffic_class, path.traffic_class);
      uint16_t id = got[i].meta.ip_id;
      EXPECT_TRUE(wire::VerifyIcrc(got[i].meta, got[i].bytes, &id));
    }
  }

  const unsigned mtu_;
  std::string interface_;
  std::optional<NetworkNamespace> spaces_[2];
};

}  // namespace rocegw::testing
