// SPDX-License-Identifier: Apache-2.0
// Waits for next hops between two network namespaces joined by a veth pair. Needs root.
#include "gateway/port/kernel/neighbour_waits.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "gateway/base/timing/monotonic_clock.h"
#include "tests/support/network/network_namespace.h"

namespace rocegw::port::waits {
namespace {

using rocegw::testing::JoinByVeth;
using rocegw::testing::NetworkNamespace;

constexpr char kInterface[] = "veth0";
constexpr Duration kLong = Seconds(60);
constexpr Duration kShort = Milliseconds(300);

wire::Gid V4(uint8_t host) { return wire::Gid::FromV4(0x0A090000U | host); }

wire::Gid V6(uint8_t host) {
  wire::Gid gid;
  gid.bytes = {0xFD, 0x09};
  gid.bytes[15] = host;
  return gid;
}

// Takes CAP_NET_ADMIN from the calling thread, and so from the threads that it starts.
void DropNetAdmin() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  ASSERT_EQ(syscall(SYS_capget, &header, data), 0);
  data[0].effective &= ~(1U << CAP_NET_ADMIN);
  ASSERT_EQ(syscall(SYS_capset, &header, data), 0);
}

class NeighbourWaitsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto left = NetworkNamespace::Create();
    auto right = NetworkNamespace::Create();
    ASSERT_TRUE(left.ok()) << left.status().text();
    ASSERT_TRUE(right.ok()) << right.status().text();
    left_.emplace(std::move(*left));
    right_.emplace(std::move(*right));
    ASSERT_TRUE(JoinByVeth(*left_, *right_, kInterface, 1500).ok());
    const NetworkNamespace::Inside inside(*left_);
    index_ = if_nametoindex(kInterface);
  }

  // In the left namespace.
  void Start(uint64_t number, const wire::Gid& destination, Duration timeout) {
    const NetworkNamespace::Inside inside(*left_);
    ASSERT_TRUE(
        waits_.Start(number, {destination.IsV4() ? V4(1) : V6(1), destination, index_, timeout}));
  }

  std::optional<bool> Reported(uint64_t number, std::chrono::milliseconds within) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, within, [&] { return reported_.contains(number); });
    const auto found = reported_.find(number);
    return found == reported_.end() ? std::nullopt : std::optional(found->second);
  }

  void Run(const NetworkNamespace& where, const std::string& command) {
    const Status status = where.Run(command);
    ASSERT_TRUE(status.ok()) << status.text();
  }

  static constexpr std::chrono::seconds kPatience{30};
  std::optional<NetworkNamespace> left_;
  std::optional<NetworkNamespace> right_;
  unsigned index_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, bool> reported_;
  NeighbourWaits waits_{[this](uint64_t number, bool reachable) {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(reported_.emplace(number, reachable).second) << number << " was reported twice";
    changed_.notify_all();
  }};
};

TEST_F(NeighbourWaitsTest, NeighbourThatAnswers_IsReachable) {
  Start(1, V4(2), kLong);
  EXPECT_EQ(Reported(1, kPatience), true);
  Start(2, V6(2), kLong);
  EXPECT_EQ(Reported(2, kPatience), true);
}

TEST_F(NeighbourWaitsTest, WithoutTheRightToChangeTheTable_NeighbourIsAskedByAPacket) {
  std::thread unprivileged([&] {
    const NetworkNamespace::Inside inside(*left_);
    const auto start = [&](uint64_t number, const wire::Gid& source, const wire::Gid& to) {
      ASSERT_TRUE(waits_.Start(number, {source, to, index_, kLong}));
    };
    DropNetAdmin();
    start(1, V4(1), V4(2));
    start(2, V6(1), V6(2));
    EXPECT_EQ(Reported(1, kPatience), true);
    EXPECT_EQ(Reported(2, kPatience), true);
  });
  unprivileged.join();
}

TEST_F(NeighbourWaitsTest, NeighbourThatIsAbsent_IsReportedWithTheTimeAndNotBefore) {
  const TimePoint began = MonotonicNow();
  Start(1, V4(99), kShort);
  Start(2, V6(99), kShort);
  EXPECT_EQ(Reported(1, kPatience), false);
  EXPECT_EQ(Reported(2, kPatience), false);
  EXPECT_GE(MonotonicNow() - began, kShort);
}

TEST_F(NeighbourWaitsTest, NeighbourThatComesMeanwhile_IsReachable) {
  Start(1, V4(99), kLong);
  Start(2, V4(99), kLong);
  EXPECT_EQ(Reported(1, std::chrono::milliseconds(200)), std::nullopt);
  Run(*right_, "ip address add 10.9.0.99/24 dev veth0");
  EXPECT_EQ(Reported(1, kPatience), true);
  EXPECT_EQ(Reported(2, kPatience), true);
}

TEST_F(NeighbourWaitsTest, DestinationBehindARouter_StandsForTheRouter) {
  Run(*left_, "ip route add 192.0.2.0/24 via 10.9.0.2");
  Run(*left_, "ip route add 198.51.100.0/24 via 10.9.0.99");
  Start(1, wire::Gid::FromV4(0xC0000209), kLong);
  EXPECT_EQ(Reported(1, kPatience), true);
  Start(2, wire::Gid::FromV4(0xC6336409), kShort);
  EXPECT_EQ(Reported(2, kPatience), false);
}

TEST_F(NeighbourWaitsTest, WhereThereAreNoNeighbours_IsReachable) {
  Start(1, V4(1), kLong);                          // an own address
  Start(2, wire::Gid::FromV4(0xCB007109), kLong);  // no route
  Start(3, wire::Gid::FromV4(0x7F000001), kLong);  // loopback
  Run(*left_,
      "ip tuntap add dev tun0 mode tun && ip link set tun0 up && "
      "ip route add 192.0.2.0/24 dev tun0");
  Start(4, wire::Gid::FromV4(0xC0000209), kLong);
  for (const uint64_t number : {1, 2, 3, 4}) EXPECT_EQ(Reported(number, kPatience), true) << number;
}

TEST_F(NeighbourWaitsTest, CancelledWait_IsNotReported) {
  Start(1, V4(99), kShort);
  waits_.Cancel(1);
  Start(2, V4(98), kShort);
  EXPECT_EQ(Reported(2, kPatience), false);
  EXPECT_EQ(Reported(1, std::chrono::milliseconds(0)), std::nullopt);
}

TEST_F(NeighbourWaitsTest, End_WaitsForNothing) {
  NeighbourWaits waits([](uint64_t, bool) { FAIL() << "no wait ended"; });
  const NetworkNamespace::Inside inside(*left_);
  ASSERT_TRUE(waits.Start(1, {V4(1), V4(99), index_, kLong}));
}

}  // namespace
}  // namespace rocegw::port::waits
