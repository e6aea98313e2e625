// SPDX-License-Identifier: Apache-2.0
// Bounds for connections without a certificate, over loopback.
#include "controlplane/server/front/connection_front.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "controlplane/server/front/peer_address.h"

namespace rocegw::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A TLS record of type handshake, version 3.1 and length 1.
constexpr std::string_view kHello("\x16\x03\x01\x00\x01\x01", 6);

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
  // Opens a client's connection that sends nothing. `host`: last byte of the source 127.0.0.x.
  UniqueFd ConnectSilently(uint8_t host = 1) const {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in from{};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host);
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&from), sizeof from), 0);
    sockaddr_in to = from;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(front_->port()));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return fd;
  }
  UniqueFd ConnectWithHello(uint8_t host = 1) const {
    UniqueFd fd = ConnectSilently(host);
    EXPECT_EQ(send(fd.get(), kHello.data(), kHello.size(), MSG_NOSIGNAL), ssize_t(kHello.size()));
    return fd;
  }
  // Opens a client's connection and waits until it was handed over.
  UniqueFd Connect() {
    const size_t before = handed();
    UniqueFd fd = ConnectWithHello();
    EXPECT_TRUE(AwaitHanded(before + 1));
    return fd;
  }
  size_t handed() {
    const std::lock_guard lock(mutex_);
    return handed_.size();
  }
  bool AwaitHanded(size_t count) {
    std::unique_lock lock(mutex_);
    return arrived_.wait_for(lock, seconds(10), [&] { return handed_.size() >= count; });
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

  // Reads of the descriptor that was handed over last until no data comes for this time, or all
  // bytes that are wanted have come.
  size_t ReadHanded(milliseconds quiet, size_t wanted = SIZE_MAX) {
    std::vector<char> bytes(1 << 16);
    size_t taken = 0;
    for (pollfd wait{handed_.back().get(), POLLIN, 0};
         taken < wanted && poll(&wait, 1, static_cast<int>(quiet.count())) == 1;) {
      const ssize_t length = recv(wait.fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (length <= 0) break;
      taken += static_cast<size_t>(length);
    }
    return taken;
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<UniqueFd> handed_;
  std::optional<ConnectionFront> front_;
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

TEST_F(ConnectionFrontTest, StrangerWithoutHello_IsClosedAndNeverHandedOver) {
  Start({.hello_time = milliseconds(50)});
  const UniqueFd silent = ConnectSilently();
  const UniqueFd half = ConnectSilently();
  ASSERT_EQ(send(half.get(), kHello.data(), kHello.size() - 1, MSG_NOSIGNAL), 5);
  EXPECT_TRUE(Ends(silent, seconds(10)) && Ends(half, seconds(10)));
  EXPECT_EQ(front_->closed(FrontClose::kTime), 2u);
  EXPECT_EQ(handed(), 0u);
}

TEST_F(ConnectionFrontTest, CallerWithoutTls_IsClosedAndNeverHandedOver) {
  Start({});
  const UniqueFd plain = ConnectSilently();
  ASSERT_EQ(send(plain.get(), "GET / HTTP/1.1", 14, MSG_NOSIGNAL), 14);
  EXPECT_TRUE(Ends(plain, seconds(10)));
  EXPECT_EQ(front_->closed(FrontClose::kNoTls), 1u);
  EXPECT_EQ(handed(), 0u);
}

TEST_F(ConnectionFrontTest, HelloInParts_IsHandedOverWhenItIsComplete) {
  Start({});
  const UniqueFd slow = ConnectSilently();
  for (const char& byte : kHello) {
    EXPECT_EQ(handed(), 0u);
    ASSERT_EQ(send(slow.get(), &byte, 1, MSG_NOSIGNAL), 1);
  }
  EXPECT_TRUE(AwaitHanded(1));
  EXPECT_EQ(ReadHanded(milliseconds(10)), kHello.size());
}

TEST_F(ConnectionFrontTest, StrangersBeyondTheSlots_WaitForTheNextMember) {
  Start({.handed = 1, .slot_time = seconds(60)});
  const UniqueFd first = Connect();
  const UniqueFd second = ConnectWithHello();
  EXPECT_FALSE(Ends(second, milliseconds(300)));
  EXPECT_EQ(handed(), 1u);
  front_->Admit(PeerOf(first), "a");
  EXPECT_TRUE(AwaitHanded(2));
  EXPECT_TRUE(IsOpen(first) && IsOpen(second));
}

TEST_F(ConnectionFrontTest, SlotOfAnEndedStranger_IsFreeWhenItsDescriptorIsClosed) {
  Start({.handed = 1, .slot_time = seconds(60)});
  UniqueFd first = Connect();
  const UniqueFd second = ConnectWithHello();
  first.Reset();
  EXPECT_FALSE(Ends(second, milliseconds(300)));
  ASSERT_EQ(handed(), 1u) << "gRPC still has the streams of the first";
  {
    const std::lock_guard lock(mutex_);
    handed_[0].Reset();
  }
  EXPECT_TRUE(AwaitHanded(2));
}

TEST_F(ConnectionFrontTest, SlotTimeEnds_WhenAnotherStrangerWaits) {
  Start({.handed = 2, .handed_per_source = 1, .slot_time = milliseconds(50)});
  const UniqueFd first = Connect();
  EXPECT_FALSE(Ends(first, milliseconds(300))) << "no stranger waits";
  const UniqueFd second = ConnectWithHello();
  EXPECT_TRUE(Ends(first, seconds(10)));
  EXPECT_EQ(front_->closed(FrontClose::kSlots), 1u);
  {
    const std::lock_guard lock(mutex_);
    handed_[0].Reset();
  }
  EXPECT_TRUE(AwaitHanded(2));
}

TEST_F(ConnectionFrontTest, Slots_GoToTheSourceThatHasFewest) {
  Start({.handed = 3, .handed_per_source = 3, .slot_time = seconds(60)});
  std::vector<UniqueFd> greedy;
  for (int i = 0; i < 3; ++i) greedy.push_back(Connect());
  for (int i = 0; i < 10; ++i) greedy.push_back(ConnectWithHello(1));
  EXPECT_FALSE(Ends(greedy.back(), milliseconds(100)));
  const UniqueFd modest = ConnectWithHello(2);
  EXPECT_FALSE(Ends(modest, milliseconds(100)));
  front_->Admit(PeerOf(greedy[0]), "a");
  ASSERT_TRUE(AwaitHanded(4));
  sockaddr_in from{};
  socklen_t size = sizeof from;
  ASSERT_EQ(getpeername(handed_[3].get(), reinterpret_cast<sockaddr*>(&from), &size), 0);
  EXPECT_EQ(from.sin_addr.s_addr, htonl(INADDR_LOOPBACK + 1));
}

TEST_F(ConnectionFrontTest, StrangerThatSendsTooMuch_IsReadNoFurtherAndClosed) {
  Start({.stranger_bytes = 1000, .held_time = milliseconds(300)});
  const UniqueFd talker = Connect();
  const std::string much(2000, 'x');
  ASSERT_EQ(send(talker.get(), much.data(), much.size(), MSG_NOSIGNAL), ssize_t(much.size()));
  EXPECT_TRUE(Ends(talker, seconds(10)));
  EXPECT_EQ(front_->closed(FrontClose::kBytes), 1u);
  // Neither before the end, nor, as a socket's data can still be read then, after it.
  EXPECT_EQ(ReadHanded(milliseconds(0)), 0u);
}

// A message may arrive before the call is known to be a member's.
TEST_F(ConnectionFrontTest, MemberWhoseReadingStopped_IsReadAgainWhenItIsAdmitted) {
  Start({.stranger_bytes = 1000});
  const UniqueFd member = Connect();
  const std::string much(60000, 'x');
  size_t read = ReadHanded(milliseconds(10));
  // The front stops reading at the first part.
  ASSERT_EQ(send(member.get(), much.data(), 2000, 0), 2000);
  EXPECT_FALSE(Ends(member, milliseconds(300)));
  // In one piece: of a socket full of small segments the kernel gives to read what the front holds.
  const size_t rest = much.size() - 2000;
  ASSERT_EQ(send(member.get(), much.data() + 2000, rest, 0), static_cast<ssize_t>(rest));
  read += ReadHanded(milliseconds(300));
  EXPECT_LT(read, much.size());
  front_->Admit(PeerOf(member), "a");
  read += ReadHanded(seconds(20), kHello.size() + much.size() - read);
  EXPECT_EQ(read, kHello.size() + much.size());
}

// A front that checks at intervals would let through hundreds of MiB on loopback meanwhile.
TEST_F(ConnectionFrontTest, StrangerThatFloods_IsClosedWhenItsBytesArrive) {
  Start({});
  const UniqueFd flooder = Connect();
  std::thread sender([&] {
    const std::string much(1 << 16, 'x');
    while (send(flooder.get(), much.data(), much.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  const size_t taken = ReadHanded(seconds(10));
  shutdown(flooder.get(), SHUT_RDWR);
  sender.join();
  EXPECT_EQ(front_->closed(FrontClose::kBytes), 1u);
  EXPECT_LT(taken, size_t{16} << 20);
}

// Small segments fill the receive buffer with few bytes, and a full buffer is readable.
TEST_F(ConnectionFrontTest, HeldStrangerOfSmallSegments_IsClosedWhenItIsReadOn) {
  Start({.stranger_bytes = 1000, .held_time = seconds(60)});
  const UniqueFd trickler = Connect();
  const int on = 1;
  setsockopt(trickler.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::thread sender([&] {
    while (send(trickler.get(), "x", 1, MSG_NOSIGNAL) > 0) {
    }
  });
  const size_t taken = ReadHanded(seconds(10));
  shutdown(trickler.get(), SHUT_RDWR);
  sender.join();
  EXPECT_EQ(front_->closed(FrontClose::kBytes), 1u);
  EXPECT_LT(taken, 100000u);
}

TEST_F(ConnectionFrontTest, HeapOfManyStrangers_GoesBackToTheSystem) {
  Start({.handed = 1024, .handed_per_source = 1024, .stranger_time = seconds(3)});
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
  Start({.strangers_per_source = 2, .handed_per_source = 8});
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
  const UniqueFd first = ConnectSilently();
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

TEST_F(ConnectionFrontTest, PrincipalWithTooManyCalls_LosesItsConnections_AndGetsNoOtherForAWhile) {
  Start({});
  const UniqueFd first = Connect();
  front_->Admit(PeerOf(first), "p");
  const UniqueFd second = Connect();
  front_->Admit(PeerOf(second), "p");
  const UniqueFd other = Connect();
  front_->Admit(PeerOf(other), "q");
  front_->Expel("p");
  EXPECT_TRUE(Ends(first, seconds(10)));
  EXPECT_TRUE(Ends(second, seconds(10)));
  EXPECT_TRUE(IsOpen(other));
  const UniqueFd again = Connect();
  front_->Admit(PeerOf(again), "p");
  EXPECT_TRUE(Ends(again, seconds(10)));
  EXPECT_EQ(front_->closed(FrontClose::kCalls), 3u);
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
