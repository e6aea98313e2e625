// SPDX-License-Identifier: Apache-2.0
// The connection of a take-over: messages and descriptors over a socket.
#include "gateway/take_over/connection.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

namespace rocegw::take_over {
namespace {

using Outcome = Connection::Outcome;

class ConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    left_ = Connection(UniqueFd(ends[0]));
    right_ = Connection(UniqueFd(ends[1]));
  }
  Connection left_;
  Connection right_;
};

TEST_F(ConnectionTest, CarriesDescriptorsWithTheirLabels) {
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  left_.Send(Descriptors{{{FdKind::kRuntimeLock, "a"}, {FdKind::kGrpcListener, "b"}}},
             {null.get(), null.get()});
  Connection::Received received = right_.Receive();
  ASSERT_EQ(received.outcome, Outcome::kMessage);
  EXPECT_EQ(std::get<Descriptors>(*received.message).labels.size(), 2u);
  ASSERT_EQ(received.fds.size(), 2u);
  EXPECT_EQ(fcntl(received.fds[0].get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_EQ(right_.Receive().outcome, Outcome::kNothing);
}

TEST_F(ConnectionTest, DescriptorsWithoutLabels_AreMalformed) {
  const UniqueFd null(open("/dev/null", O_RDONLY));
  left_.Send(Ready(), {null.get()});
  EXPECT_EQ(right_.Receive().outcome, Outcome::kMalformed);
  left_.Send(Descriptors{{{FdKind::kRuntimeLock, "a"}}});
  EXPECT_EQ(right_.Receive().outcome, Outcome::kMalformed);
}

TEST_F(ConnectionTest, FullSocket_KeepsTheOrder) {
  for (uint32_t i = 0; i < 2000; ++i) left_.Send(Offer{std::string(1000, 'x'), i});
  EXPECT_TRUE(left_.has_backlog());
  for (uint32_t i = 0; i < 2000; ++i) {
    Connection::Received received = right_.Receive();
    ASSERT_EQ(received.outcome, Outcome::kMessage);
    ASSERT_EQ(std::get<Offer>(*received.message).descriptors, i);
    left_.Flush();
  }
  EXPECT_FALSE(left_.has_backlog());
}

TEST_F(ConnectionTest, EndedWithUnreadMessages_StillTellsWhatItSent) {
  right_.Send(Prepared());  // stays unread
  left_.Send(Commit());
  left_.Close();
  Connection::Received received = right_.Receive();
  ASSERT_EQ(received.outcome, Outcome::kMessage);
  EXPECT_TRUE(std::holds_alternative<Commit>(*received.message));
  EXPECT_EQ(right_.Receive().outcome, Outcome::kClosed);
}

TEST(TakeOverSocket, IsForItsOwnerOnly_AndNamesThePeer) {
  char pattern[] = "/tmp/rocegw-test-XXXXXX";
  ASSERT_NE(mkdtemp(pattern), nullptr);
  const std::string path = std::string(pattern) + "/take_over.sock";
  EXPECT_EQ(ConnectToPredecessor(path).status().error(), ENOENT);
  {
    auto listener = ListenForSuccessor(path);
    ASSERT_TRUE(listener.ok()) << listener.status().text();
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    auto connected = ConnectToPredecessor(path);
    ASSERT_TRUE(connected.ok());
    const UniqueFd accepted(accept(listener->get(), nullptr, nullptr));
    const auto peer = PeerOf(accepted.get());
    ASSERT_TRUE(peer.ok());
    EXPECT_EQ(peer.value().pid, getpid());
    EXPECT_TRUE(IsTrusted(peer.value()));
    EXPECT_FALSE(IsTrusted({1, geteuid() + 1}));
  }
  EXPECT_EQ(ConnectToPredecessor(path).status().error(), ECONNREFUSED);
  EXPECT_TRUE(ListenForSuccessor(path).ok()) << "a file without a server is replaced";
  std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace rocegw::take_over
