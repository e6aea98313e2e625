// SPDX-License-Identifier: Apache-2.0
// Bounds for connections without a certificate, over loopback.
#include "controlplane/server/connection_front.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace rocegw::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ConnectionFrontTest : public ::testing::Test {
 protected:
  void Start(const FrontLimits& limits) {
    front_.emplace(limits);
    ASSERT_TRUE(front_->Listen("127.0.0.1:0").ok());
    ASSERT_TRUE(front_
                    ->Start([this](int, int connection) {
                      const std::lock_guard lock(mutex_);
                      handed_.emplace_back(connection);
                      arrived_.notify_all();
                    })
                    .ok());
  }
  // Opens a client's connection; waits until it was handed over, if requested.
  UniqueFd Connect(bool await = true) {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(front_->port()));
    std::unique_lock lock(mutex_);
    const size_t before = handed_.size();
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    EXPECT_TRUE(!await ||
                arrived_.wait_for(lock, seconds(10), [&] { return handed_.size() > before; }));
    return fd;
  }
  static std::string PeerOf(const UniqueFd& fd) {
    sockaddr_in own{};
    socklen_t size = sizeof own;
    EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size), 0);
    return "127.0.0.1:" + std::to_string(ntohs(own.sin_port));
  }
  // Returns true if the other side closes it within this time.
  static bool Ends(const UniqueFd& fd, milliseconds within) {
    pollfd wait = {fd.get(), POLLRDHUP, 0};
    return poll(&wait, 1, static_cast<int>(within.count())) == 1;
  }
  static bool IsOpen(const UniqueFd& fd) { return !Ends(fd, milliseconds(0)); }

  std::optional<ConnectionFront> front_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<UniqueFd> handed_;
};

TEST_F(ConnectionFrontTest, StrangerThatTakesTooLong_IsClosed) {
  Start({.stranger_time = milliseconds(50)});
  const UniqueFd silent = Connect();
  EXPECT_TRUE(Ends(silent, seconds(10)));
  EXPECT_EQ(front_->closed(FrontClose::kTime), 1u);
  EXPECT_EQ(front_->strangers(), 0u);
}

TEST_F(ConnectionFrontTest, Member_IsCountedNoMore) {
  Start({.stranger_time = milliseconds(200)});
  const UniqueFd member = Connect();
  front_->Admit(PeerOf(member), "spiffe://rocegw/node/a");
  EXPECT_EQ(front_->strangers(), 0u);
  const UniqueFd stranger = Connect();
  EXPECT_TRUE(Ends(stranger, seconds(10)));
  EXPECT_TRUE(IsOpen(member));
}

TEST_F(ConnectionFrontTest, StrangerThatSendsTooMuch_IsClosed) {
  Start({.stranger_bytes = 1000});
  const UniqueFd talker = Connect();
  const std::string much(2000, 'x');
  ASSERT_EQ(send(talker.get(), much.data(), much.size(), MSG_NOSIGNAL), ssize_t(much.size()));
  EXPECT_TRUE(Ends(talker, seconds(10)));
  EXPECT_EQ(front_->closed(FrontClose::kBytes), 1u);
}

// A front that checks at intervals would let through hundreds of MiB on loopback meanwhile.
TEST_F(ConnectionFrontTest, StrangerThatFloods_IsClosedWhenItsBytesArrive) {
  Start({.stranger_bytes = 1 << 16});
  const UniqueFd flooder = Connect();
  const int server = handed_.back().get();
  std::thread sender([&] {
    const std::string much(1 << 16, 'x');
    while (send(flooder.get(), much.data(), much.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  size_t taken = 0;
  std::vector<char> bytes(1 << 16);
  for (pollfd wait{server, POLLIN, 0}; poll(&wait, 1, 10000) == 1;) {
    const ssize_t length = recv(server, bytes.data(), bytes.size(), 0);
    if (length <= 0) break;
    taken += static_cast<size_t>(length);
  }
  shutdown(flooder.get(), SHUT_RDWR);
  sender.join();
  EXPECT_EQ(front_->closed(FrontClose::kBytes), 1u);
  EXPECT_LT(taken, size_t{16} << 20);
}

TEST_F(ConnectionFrontTest, HeapOfManyStrangers_GoesBackToTheSystem) {
  Start({.stranger_time = seconds(3)});
  // Freed memory below a block in use stays with the process.
  std::vector<std::vector<char>> blocks(4096, std::vector<char>(size_t{1} << 14));
  for (int i = 0; i < 64; ++i) Connect();
  blocks.erase(blocks.begin(), blocks.end() - 1);
  // Its time ends two seconds after the heap check is due.
  const UniqueFd kept = Connect();
  EXPECT_TRUE(Ends(kept, seconds(30)));
  EXPECT_GE(front_->heap_returns(), 1u);
}

TEST_F(ConnectionFrontTest, OneTooManyOfASource_EndsItsOldest) {
  Start({.strangers_per_source = 2});
  const UniqueFd first = Connect();
  const UniqueFd second = Connect();
  const UniqueFd third = Connect();
  EXPECT_TRUE(Ends(first, seconds(10)));
  EXPECT_TRUE(IsOpen(second) && IsOpen(third));
  EXPECT_EQ(front_->closed(FrontClose::kSource), 1u);
}

TEST_F(ConnectionFrontTest, OneTooManyOfAll_EndsTheOldest) {
  Start({.strangers = 1});
  const UniqueFd first = Connect();
  const UniqueFd second = Connect();
  EXPECT_TRUE(Ends(first, seconds(10)));
  EXPECT_TRUE(IsOpen(second));
  EXPECT_EQ(front_->closed(FrontClose::kStrangers), 1u);
}

TEST_F(ConnectionFrontTest, DescriptorsInReserve_AreNotAStrangers) {
  Start({.descriptors = 3});
  const UniqueFd first = Connect(false);
  EXPECT_TRUE(Ends(first, seconds(10)));
  EXPECT_EQ(front_->strangers(), 0u) << "no stranger could make room";
  EXPECT_EQ(front_->closed(FrontClose::kDescriptors), 1u);
}

TEST_F(ConnectionFrontTest, ConnectionsOfOneMember_AreBounded) {
  Start({.per_member = 2});
  std::vector<UniqueFd> connections;
  for (int i = 0; i < 3; ++i) {
    connections.push_back(Connect());
    front_->Admit(PeerOf(connections.back()), "p");
  }
  EXPECT_TRUE(Ends(connections[2], seconds(10)));
  EXPECT_EQ(front_->closed(FrontClose::kMember), 1u);
  const UniqueFd other = Connect();
  front_->Admit(PeerOf(other), "q");
  EXPECT_TRUE(IsOpen(other));
  {
    // An ended connection frees its slot.
    const std::lock_guard lock(mutex_);
    handed_[0].Reset();
  }
  const UniqueFd next = Connect();
  front_->Admit(PeerOf(next), "p");
  EXPECT_TRUE(IsOpen(next));
}

// gRPC would keep it until it has read everything before the end.
TEST_F(ConnectionFrontTest, StrangerThatClosesOneDirection_IsClosed) {
  Start({});
  const UniqueFd half = Connect();
  ASSERT_EQ(send(half.get(), "x", 1, MSG_NOSIGNAL), 1);
  ASSERT_EQ(shutdown(half.get(), SHUT_WR), 0);
  EXPECT_TRUE(Ends(half, seconds(10)));
}

TEST(PeerKey, IsTheAddressWithItsPort) {
  EXPECT_EQ(PeerKey("ipv4:10.0.0.1:4711"), "10.0.0.1:4711");
  EXPECT_EQ(PeerKey("ipv6:%5B2001:db8::1%5D:4711"), "[2001:db8::1]:4711");
  EXPECT_EQ(PeerKey("ipv6:[2001:db8::1]:4711"), "[2001:db8::1]:4711");
  EXPECT_EQ(PeerKey("ipv6:%5Bfe80::1%25eth0%5D:1"), "[fe80::1]:1");
  EXPECT_EQ(PeerKey("unix:"), "");
}

TEST(LimitsFor, LeaveMostDescriptorsToMembers) {
  for (const uint64_t descriptors : {64u, 256u, 1024u, 1048576u}) {
    const FrontLimits limits = LimitsFor(descriptors);
    EXPECT_GE(limits.strangers, 4u);
    EXPECT_LE(2 * limits.strangers, descriptors / 4);
    EXPECT_LE(limits.strangers_per_source, limits.strangers / 2);
    EXPECT_LT(static_cast<uint64_t>(limits.descriptors), descriptors);
  }
}

}  // namespace
}  // namespace rocegw::server
