// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/memory/child_process.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace rocegw::testing {
namespace {

void SendFd(int socket, int fd) {
  char byte = 1;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  (void)!::sendmsg(socket, &header, 0);
}

}  // namespace

ChildProcess::ChildProcess(const Setup& setup) : bytes_(setup.pages * kPage) {
  void* mapping =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(mapping, MAP_FAILED);
  memory_ = static_cast<uint8_t*>(mapping);
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (setup.uid != 0 &&
        (::setgroups(0, nullptr) != 0 || ::setresgid(setup.uid, setup.uid, setup.uid) != 0 ||
         ::setresuid(setup.uid, setup.uid, setup.uid) != 0)) {
      ::_exit(1);
    }
    // Changing the user makes a process undumpable. Programs started by such a user are dumpable.
    ::prctl(PR_SET_DUMPABLE, 1);
    const int fd = setup.prepare ? setup.prepare(memory_) : -1;
    SendFd(theirs.get(), fd);
    while (true) ::pause();
  }
  theirs.Reset();
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  EXPECT_EQ(::recvmsg(ours.get(), &header, MSG_CMSG_CLOEXEC), 1) << "the child did not get ready";
  if (const cmsghdr* rights = CMSG_FIRSTHDR(&header)) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
    fd_.Reset(fd);
  }
}

void ChildProcess::Kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

ChildProcess::~ChildProcess() {
  Kill();
  ::munmap(memory_, bytes_);
}

}  // namespace rocegw::testing
