// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "gateway/session/attach/peer.h"

namespace rocegw::session {
namespace {

TEST(ProcessStartTime, Self_IsThereAndConstant) {
  const auto first = ProcessStartTime(::getpid());
  ASSERT_TRUE(first.has_value());
  EXPECT_GT(*first, 0u);
  EXPECT_EQ(ProcessStartTime(::getpid()), first);
}

TEST(ProcessStartTime, NameWithParenthesesAndSpaces_DoesNotMislead) {
  const auto before = ProcessStartTime(::getpid());
  char name[16] = {};
  ::prctl(PR_GET_NAME, name);
  ::prctl(PR_SET_NAME, "a) R 1 1 (b");
  const auto after = ProcessStartTime(::getpid());
  ::prctl(PR_SET_NAME, name);
  EXPECT_EQ(after, before);
}

TEST(ProcessStartTime, NoSuchProcess_IsNothing) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(ProcessStartTime(child).has_value());
}

TEST(IdentifyPeer, Socketpair_IsOurselves) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const UniqueFd a(ends[0]);
  const UniqueFd b(ends[1]);
  const auto peer = IdentifyPeer(a.get());
  ASSERT_TRUE(peer.ok()) << peer.status().text();
  EXPECT_EQ(peer.value().pid, ::getpid());
  EXPECT_EQ(peer.value().uid, ::geteuid());
  EXPECT_EQ(peer.value().start_time, ProcessStartTime(::getpid()));
  EXPECT_FALSE(peer.value().comm.empty());
  pollfd poll_process{peer.value().process.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&poll_process, 1, 0), 0) << "alive";
}

TEST(IdentifyPeer, NameOfAnyBytes_IsPrintableUtf8) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const UniqueFd a(ends[0]);
  const UniqueFd b(ends[1]);
  char name[16] = {};
  ::prctl(PR_GET_NAME, name);
  ::prctl(PR_SET_NAME, "\xff\x1b[2J\nx");
  const auto peer = IdentifyPeer(a.get());
  ::prctl(PR_SET_NAME, name);
  ASSERT_TRUE(peer.ok()) << peer.status().text();
  EXPECT_EQ(peer.value().comm, "\\xff\\x1b[2J\\x0ax");
}

TEST(IdentifyPeer, WithoutAFreeDescriptor_SaysSo) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd a(ends[0]);
  const UniqueFd b(ends[1]);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const UniqueFd lowest(::fcntl(a.get(), F_DUPFD_CLOEXEC, 0));
  for (const rlim_t free : {0, 1, 2}) {
    const rlimit few{static_cast<rlim_t>(lowest.get()) + free, old.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    const auto peer = IdentifyPeer(a.get());
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
    EXPECT_TRUE(free != 0 || !peer.ok());
    EXPECT_EQ(peer.ok() ? EMFILE : peer.status().error(), EMFILE) << free << " are free";
  }
}

TEST(IdentifyPeer, ProcessThatIsGone_IsRefused) {
  int ends[2] = {};
  int carrier[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, carrier), 0);
  // The child creates the pair, so it is the peer; it sends one end and exits.
  const pid_t child = ::fork();
  if (child == 0) {
    (void)!::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends);
    iovec part{ends, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &ends[0], sizeof(int));
    ::_exit(::sendmsg(carrier[1], &header, 0) == 1 ? 0 : 1);
  }
  ::waitpid(child, nullptr, 0);
  char byte;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ASSERT_EQ(::recvmsg(carrier[0], &header, 0), 1);
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof fd);
  const UniqueFd socket(fd);
  const auto peer = IdentifyPeer(socket.get());
  ASSERT_FALSE(peer.ok());
  EXPECT_EQ(peer.status().error(), ESRCH);
  ::close(carrier[0]);
  ::close(carrier[1]);
}

}  // namespace
}  // namespace rocegw::session
