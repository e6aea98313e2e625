// SPDX-License-Identifier: Apache-2.0
// Start of the udp port mode beside programs that hold its names. Needs root: the names are those
// of a network namespace of the test, and the programs have other users.
#include "gateway/port/instance_lock.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "gateway/port/udp/udp_port.h"
#include "tests/support/network/network_namespace.h"

namespace rocegw::port::instance_lock {
namespace {

using rocegw::testing::NetworkNamespace;

constexpr char kName[] = "rocegw-udp-4791";
constexpr uid_t kOther = 1234;

class InstanceLockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto created = NetworkNamespace::Create();
    ASSERT_TRUE(created.ok()) << created.status().text();
    namespace_ = std::make_unique<NetworkNamespace>(std::move(*created));
    inside_ = std::make_unique<NetworkNamespace::Inside>(*namespace_);
  }

  // Opens something as another user: on a thread of its own, whose user changes alone.
  template <typename Open>
  UniqueFd AsOtherUser(Open open) {
    UniqueFd fd;
    std::thread other([&] {
      ASSERT_EQ(syscall(SYS_setresuid, -1, kOther, -1), 0);
      fd = open();
    });
    other.join();
    EXPECT_TRUE(fd.valid());
    return fd;
  }

  static UniqueFd HoldName(int backlog) {
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, kName, sizeof kName - 1);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + sizeof kName);
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) return {};
    if (backlog >= 0 && listen(fd.get(), backlog) != 0) return {};
    return fd;
  }
  static UniqueFd HoldPort() {
    UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(wire::kRocePort);
    const bool bound = bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    return bound ? std::move(fd) : UniqueFd();
  }
  static StatusOr<std::unique_ptr<UdpPortGroup>> Start(InheritedFds* inherited = nullptr) {
    return UdpPortGroup::Create({.interfaces = {"lo"}}, SteeringTable(1), inherited);
  }

 private:
  std::unique_ptr<NetworkNamespace> namespace_;
  std::unique_ptr<NetworkNamespace::Inside> inside_;
};

TEST_F(InstanceLockTest, AnotherUserListensAtTheName_TheGatewayStartsAndSaysSo) {
  const UniqueFd holder = AsOtherUser([] { return HoldName(1); });
  auto group = Start();
  ASSERT_TRUE(group.ok()) << group.status().text();
  EXPECT_NE((*group)->lock_squatter().find("of user 1234"), std::string::npos)
      << (*group)->lock_squatter();
}

TEST_F(InstanceLockTest, AnotherUserHoldsTheNameInSilence_TheGatewayStarts) {
  const UniqueFd holder = AsOtherUser([] { return HoldName(-1); });
  auto group = Start();
  ASSERT_TRUE(group.ok()) << group.status().text();
  EXPECT_FALSE((*group)->lock_squatter().empty());
}

TEST_F(InstanceLockTest, NameHeldByAnotherUser_ASecondGatewayIsRefusedStill) {
  UniqueFd holder = AsOtherUser([] { return HoldName(1); });
  auto first = Start();
  ASSERT_TRUE(first.ok()) << first.status().text();
  EXPECT_EQ(Start().status().error(), EADDRINUSE);
  holder.Reset();
  EXPECT_EQ(Start().status().error(), EADDRINUSE) << "also when the name is free again";
}

TEST_F(InstanceLockTest, NameHeldByAnotherUser_ASuccessorTakesOver) {
  const UniqueFd holder = AsOtherUser([] { return HoldName(1); });
  auto first = Start();
  ASSERT_TRUE(first.ok()) << first.status().text();
  OfferedFds offered;
  (*first)->Offer(offered);
  InheritedFds inherited;
  for (const OfferedFd& one : offered) inherited.Add(one.kind, one.name, UniqueFd(dup(one.fd)));
  const auto successor = Start(&inherited);
  EXPECT_TRUE(successor.ok()) << successor.status().text();
}

TEST_F(InstanceLockTest, NameIsFree_AGatewayWithItLocksOutTheNext) {
  auto first = Start();
  ASSERT_TRUE(first.ok()) << first.status().text();
  EXPECT_TRUE((*first)->lock_squatter().empty());
  const auto second = Start();
  EXPECT_EQ(second.status().error(), EADDRINUSE);
  EXPECT_NE(second.status().text().find("process " + std::to_string(getpid())), std::string::npos);
}

TEST_F(InstanceLockTest, AnotherUserHasThePort_TheErrorNamesTheUser) {
  const UniqueFd holder = AsOtherUser([] { return HoldPort(); });
  const auto group = Start();
  EXPECT_EQ(group.status().error(), EADDRINUSE);
  EXPECT_NE(group.status().text().find("user 1234"), std::string::npos) << group.status().text();
}

}  // namespace
}  // namespace rocegw::port::instance_lock
