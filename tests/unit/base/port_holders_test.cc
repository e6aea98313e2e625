// SPDX-License-Identifier: Apache-2.0
// Holders of ports: recorded tables of the kernel, this process, and a process of another user
// (needs root).
#include "gateway/base/port_holders.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gateway/base/unique_fd.h"

namespace rocegw {
namespace {

namespace fs = std::filesystem;

constexpr char kTable[] =
    "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode ref pointer drops\n"
    " 2114: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 "
    "33412 2 0000000000000000 0\n"
    " 2115: 00000000:0044 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 "
    "8 2 0000000000000000 0\n"
    " 2116: 0000000000000000FFFF00000100007F:12B7 00000000000000000000000000000000:0000 07 "
    "00000000:00000000 00:00000000 00000000     0        0 33500 2 0000000000000000 0\n"
    "cut: 00000000:12B7 00000000:0000 07\n";

// /proc made of files.
class MadeUpSockets : public ::testing::Test {
 protected:
  MadeUpSockets() { EXPECT_NE(mkdtemp(root_), nullptr); }
  ~MadeUpSockets() override { fs::remove_all(root_); }
  void File(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(root_ + ("/" + name)).parent_path());
    std::ofstream(root_ + ("/" + name)) << text;
  }
  void Socket(const std::string& process, const std::string& inode) const {
    fs::create_directories(root_ + ("/" + process + "/fd"));
    fs::create_symlink("socket:[" + inode + "]", root_ + ("/" + process + "/fd/3"));
  }
  char root_[32] = "/tmp/rocegw-holder-XXXXXX";
};

TEST(SocketsOfPort, FindsBothFamiliesAndSkipsWhatIsNoLine) {
  const auto sockets = SocketsOfPort(kTable, 4791);
  EXPECT_EQ(sockets, (std::vector<PortSocketLine>{{33412, 1000}, {33500, 0}}));
  EXPECT_EQ(SocketsOfPort(kTable, 68), (std::vector<PortSocketLine>{{8, 0}}));
  EXPECT_TRUE(SocketsOfPort("", 4791).empty());
}

TEST_F(MadeUpSockets, FindPortHolders_TellsOwnForeignAndUnknown) {
  File("net/udp", kTable);
  Socket("self", "33412");
  Socket("77", "33500");
  File("77/comm", "socat\n");
  auto holders = FindPortHolders(root_, root_ + std::string("/net"), PortKind::kUdp, 4791);
  ASSERT_EQ(holders.size(), 2U);
  EXPECT_TRUE(holders[0].own);
  EXPECT_EQ(holders[0].uid, 1000U);
  EXPECT_FALSE(holders[1].own);
  EXPECT_EQ(holders[1].pid, 77);
  EXPECT_EQ(holders[1].command, "socat");
  fs::remove_all(root_ + std::string("/77"));
  holders = FindPortHolders(root_, root_ + std::string("/net"), PortKind::kUdp, 4791);
  EXPECT_EQ(holders[1].pid, 0);
  EXPECT_TRUE(FindPortHolders(root_, root_ + std::string("/net"), PortKind::kUdp, 1).empty());
}

TEST(FindPortHolders, RealSocketOfThisProcess_IsItsOwn) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  socklen_t length = sizeof address;
  ASSERT_EQ(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const auto holders =
      FindPortHolders("/proc", "/proc/net", PortKind::kUdp, ntohs(address.sin_port));
  ASSERT_EQ(holders.size(), 1U);
  EXPECT_TRUE(holders[0].own);
  EXPECT_EQ(holders[0].uid, getuid());
}

// Process of another user that holds a port until the end of the test.
class StrangerTest : public ::testing::TestWithParam<PortKind> {
 protected:
  static constexpr uid_t kNobody = 65534;

  void SetUp() override {
    ASSERT_EQ(geteuid(), 0U) << "starts a process as another user: run as root";
    int ends[2] = {-1, -1};
    ASSERT_EQ(pipe(ends), 0);
    child_ = fork();
    if (child_ == 0) Hold(ends[1]);
    close(ends[1]);
    ASSERT_EQ(read(ends[0], &port_, sizeof port_), ssize_t{sizeof port_});
    close(ends[0]);
  }
  void TearDown() override {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

  pid_t child_ = -1;
  uint16_t port_ = 0;

 private:
  [[noreturn]] static void Hold(int report) {
    const int type = GetParam() == PortKind::kUdp ? SOCK_DGRAM : SOCK_STREAM;
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    socklen_t length = sizeof any;
    auto* const name = reinterpret_cast<sockaddr*>(&any);
    if (setuid(kNobody) != 0) _exit(1);
    const int fd = ::socket(AF_INET6, type, 0);
    prctl(PR_SET_NAME, "a\x1b[2Jb");
    const bool bound = bind(fd, name, length) == 0 && getsockname(fd, name, &length) == 0 &&
                       (type == SOCK_DGRAM || listen(fd, 1) == 0);
    const uint16_t port = ntohs(any.sin6_port);
    if (!bound || write(report, &port, sizeof port) != ssize_t{sizeof port}) _exit(1);
    for (;;) pause();
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, StrangerTest, ::testing::Values(PortKind::kUdp, PortKind::kTcp));

TEST_P(StrangerTest, HolderText_NamesProcessAndUserInPrintableText) {
  EXPECT_EQ(PortHolderText(GetParam(), port_),
            "process " + std::to_string(child_) + " (a\\x1b[2Jb) of user 65534");
}

TEST_P(StrangerTest, HolderText_WithoutRightToLookAtTheProcess_NamesTheUser) {
  ASSERT_EQ(seteuid(1234), 0);
  const std::string text = PortHolderText(GetParam(), port_);
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(text, "a program of user 65534");
}

TEST(PortHolderText, OfAnOwnSocket_SaysSo) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  socklen_t length = sizeof name;
  auto* const address = reinterpret_cast<sockaddr*>(&name);
  ASSERT_EQ(bind(fd, address, length), 0);
  ASSERT_EQ(getsockname(fd, address, &length), 0);
  EXPECT_EQ(PortHolderText(PortKind::kUdp, ntohs(name.sin_port)),
            "this process (socket of user " + std::to_string(geteuid()) + ")");
  close(fd);
}

TEST(PortHolderText, OfAFreePort_IsEmpty) { EXPECT_EQ(PortHolderText(PortKind::kUdp, 1), ""); }

}  // namespace
}  // namespace rocegw
