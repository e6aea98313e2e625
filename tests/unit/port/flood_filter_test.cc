// SPDX-License-Identifier: Apache-2.0
// The filter against floods, and the kernel's program for it: what passes by the one passes by the
// other, over real sockets of the loopback interface.
#include "gateway/port/flood_filter.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "gateway/base/unique_fd.h"
#include "gateway/port/udp/flood_program.h"
#include "gateway/port/udp/udp_socket.h"
#include "tests/support/network/port_fixture.h"

namespace rocegw::port {
namespace {

constexpr PassShare kNothing = 0;  // lets one datagram of 2^32 pass
constexpr uint8_t kClassCm = 7;
constexpr uint8_t kClassVendor = 0x30;

std::vector<uint8_t> Datagram(Qpn qpn, uint8_t management_class = 0) {
  std::vector<uint8_t> bytes(wire::kBthLength + wire::kDethLength + 256);
  bytes[5] = static_cast<uint8_t>(qpn.value >> 16);
  bytes[6] = static_cast<uint8_t>(qpn.value >> 8);
  bytes[7] = static_cast<uint8_t>(qpn.value);
  bytes[kMadClassAt] = management_class;
  return bytes;
}

wire::Gid V4(uint32_t last) { return wire::Gid::FromV4(0x7F000000 + last); }

TEST(FloodFilter_KindOf, FollowsQueuePairAndManagementClass) {
  EXPECT_EQ(KindOf(Datagram(Qpn{0x12})), FloodKind::kOther);
  EXPECT_EQ(KindOf(Datagram(kGsiQpn, kClassCm)), FloodKind::kConnection);
  EXPECT_EQ(KindOf(Datagram(kGsiQpn, 0x2F)), FloodKind::kConnection);
  EXPECT_EQ(KindOf(Datagram(kGsiQpn, 0x30)), FloodKind::kDiscovery);
  EXPECT_EQ(KindOf(Datagram(kGsiQpn, 0x4F)), FloodKind::kDiscovery);
  EXPECT_EQ(KindOf(Datagram(kGsiQpn, 0x50)), FloodKind::kConnection);
  EXPECT_EQ(KindOf(std::vector<uint8_t>{1, 2}), FloodKind::kOther);
}

TEST(FloodFilter_BucketOf, DependsOnTheMultiplierAndCoversAll) {
  FloodFilter filter;
  filter.multiplier = 0x9E3779B9;
  std::array<int, FloodFilter::kBuckets> load{};
  for (uint32_t i = 0; i < 4096; ++i) ++load[filter.BucketOf(V4(i))];
  for (const int count : load) EXPECT_GT(count, 32);
  FloodFilter other;
  other.multiplier = 0x85EBCA6B;
  int same = 0;
  for (uint32_t i = 0; i < 4096; ++i) same += filter.BucketOf(V4(i)) == other.BucketOf(V4(i));
  EXPECT_LT(same, 1024);
}

TEST(FloodFilter_ShareOf, KnownSourcesHaveTheirOwnShares) {
  FloodFilter filter;
  EXPECT_TRUE(filter.empty());
  filter.of_strangers[2].fill(kNothing);
  filter.Know(V4(7));
  filter.of_known[0] = kNothing;
  EXPECT_FALSE(filter.empty());
  EXPECT_EQ(filter.ShareOf(V4(7), FloodKind::kOther), kAllPass);
  EXPECT_EQ(filter.ShareOf(V4(7), FloodKind::kConnection), kNothing);
  EXPECT_EQ(filter.ShareOf(V4(8), FloodKind::kOther), kNothing);
  EXPECT_EQ(filter.ShareOf(V4(8), FloodKind::kConnection), kAllPass);
}

// A receiver for both address families with a filter.
class FloodProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto socket = OpenReceiveSocket({.port = port_, .buffer_bytes = 1 << 20});
    ASSERT_TRUE(socket.ok()) << socket.status().text();
    receiver_ = std::move(socket->fd);
  }
  // Returns true if the datagram of that source arrives. A refused one is followed by nothing: the
  // loopback interface delivers before sendto returns.
  bool Arrives(const wire::Gid& source, const std::vector<uint8_t>& datagram) {
    const UniqueFd sender(socket(source.IsV4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    EXPECT_TRUE(At(source, 0, [&](const sockaddr* at, socklen_t length) {
      return bind(sender.get(), at, length) == 0;
    }));
    EXPECT_TRUE(
        At(source.IsV4() ? V4(1) : source, port_, [&](const sockaddr* at, socklen_t length) {
          return sendto(sender.get(), datagram.data(), datagram.size(), 0, at, length) ==
                 static_cast<ssize_t>(datagram.size());
        }));
    std::array<uint8_t, 1024> bytes;
    return recv(receiver_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) ==
           static_cast<ssize_t>(datagram.size());
  }
  void Apply(const FloodFilter& filter) {
    const std::vector<sock_filter> program = FloodProgram(filter);
    EXPECT_EQ(program.empty(), filter.empty());
    ASSERT_TRUE(FilterInput(receiver_.get(), program)) << strerror(errno) << program.size();
  }

 private:
  template <typename Call>
  static bool At(const wire::Gid& gid, uint16_t port, const Call& call) {
    if (gid.IsV4()) {
      sockaddr_in at{};
      at.sin_family = AF_INET;
      at.sin_port = htons(port);
      at.sin_addr.s_addr = htonl(gid.V4());
      return call(reinterpret_cast<const sockaddr*>(&at), sizeof at);
    }
    sockaddr_in6 at{};
    at.sin6_family = AF_INET6;
    at.sin6_port = htons(port);
    memcpy(&at.sin6_addr, gid.bytes.data(), gid.bytes.size());
    return call(reinterpret_cast<const sockaddr*>(&at), sizeof at);
  }

  const uint16_t port_ = rocegw::testing::FreeUdpPort();
  UniqueFd receiver_;
};

TEST_F(FloodProgramTest, SameAsTheFilter) {
  std::minstd_rand random(5);
  const std::array<std::vector<uint8_t>, 5> datagrams = {
      Datagram(kGsiQpn, kClassCm), Datagram(kGsiQpn, kClassVendor), Datagram(kGsiQpn, 0x4F),
      Datagram(kGsiQpn, 0x50), Datagram(Qpn{0x123456})};
  const wire::Gid v6 = rocegw::testing::Loopback(false);
  for (int round = 0; round < 20; ++round) {
    FloodFilter filter;
    filter.multiplier = static_cast<uint32_t>(random()) | 1;
    for (auto& shares : filter.of_strangers)
      for (PassShare& share : shares)
        if (random() % 2 == 0) share = kNothing;
    for (PassShare& share : filter.of_known)
      if (random() % 2 == 0) share = kNothing;
    for (uint32_t i = 1; i <= 20; ++i)
      if (random() % 2 == 0) filter.Know(V4(i));
    if (random() % 2 == 0) filter.Know(v6);
    Apply(filter);
    for (const auto& datagram : datagrams) {
      for (uint32_t i = 1; i <= 40; ++i)
        ASSERT_EQ(Arrives(V4(i), datagram), filter.Passes(V4(i), datagram, 1)) << round << " " << i;
      ASSERT_EQ(Arrives(v6, datagram), filter.Passes(v6, datagram, 1)) << round;
    }
  }
}

TEST_F(FloodProgramTest, LongestProgram_IsTaken) {
  FloodFilter filter;
  for (auto& shares : filter.of_strangers) shares.fill(kNothing);
  filter.of_known.fill(kNothing);
  for (uint32_t i = 0; i < FloodFilter::kMostKnown; ++i) {
    wire::Gid known = rocegw::testing::Loopback(false);
    known.bytes[0] = static_cast<uint8_t>(1 + i);
    filter.Know(known);
  }
  Apply(filter);
  Apply(filter);
  EXPECT_FALSE(Arrives(V4(1), Datagram(Qpn{5})));
  Apply({});
  EXPECT_TRUE(Arrives(V4(1), Datagram(Qpn{5})));
}

TEST_F(FloodProgramTest, Share_IsOfDatagrams) {
  FloodFilter filter;
  for (auto& shares : filter.of_strangers) shares.fill(kAllPass / 4);
  Apply(filter);
  int arrived = 0;
  for (int i = 0; i < 2000; ++i) arrived += Arrives(V4(1), Datagram(Qpn{5})) ? 1 : 0;
  EXPECT_GT(arrived, 350);
  EXPECT_LT(arrived, 650);
}

TEST_F(FloodProgramTest, ShortDatagrams_AreDropped) {
  FloodFilter filter;
  filter.of_strangers[0].fill(kNothing);
  Apply(filter);
  EXPECT_FALSE(Arrives(V4(1), std::vector<uint8_t>(7)));
  EXPECT_TRUE(Arrives(V4(1), std::vector<uint8_t>(16)));
}

}  // namespace
}  // namespace rocegw::port
