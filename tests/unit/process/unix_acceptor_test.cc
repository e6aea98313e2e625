// SPDX-License-Identifier: Apache-2.0
// Connections of a Unix socket whose peers have no descriptors to pass.
#include "gateway/process/socket/unix_acceptor.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

namespace rocegw::process {
namespace {

constexpr SocketWords kWords = {"test socket", "path"};

class UnixAcceptorTest : public ::testing::Test {
 protected:
  UnixAcceptorTest() : path_(::testing::TempDir() + "acceptor" + std::to_string(getpid())) {
    auto listener = ListenOnUnixSocket(kWords, path_, 0600, -1, -1);
    EXPECT_TRUE(listener.ok());
    EXPECT_TRUE(acceptor_
                    .Start(std::move(*listener), "test",
                           [this](UniqueFd connection) {
                             const std::lock_guard lock(mutex_);
                             accepted_ = std::move(connection);
                             arrived_.notify_all();
                           })
                    .ok());
  }
  ~UnixAcceptorTest() override {
    acceptor_.Stop();
    unlink(path_.c_str());
  }

  UniqueFd Connect() const {
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, path_.data(), path_.size());
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return fd;
  }
  // Returns 0, or the error of passing standard input.
  static int PassDescriptor(const UniqueFd& connection) {
    char byte = 'x';
    iovec data{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int passed = STDIN_FILENO;
    std::memcpy(CMSG_DATA(header), &passed, sizeof passed);
    return sendmsg(connection.get(), &message, MSG_NOSIGNAL) == 1 ? 0 : errno;
  }

  const std::string path_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  UniqueFd accepted_;
  UnixAcceptor acceptor_;
};

// Kernels from 6.16 on refuse the descriptor; older ones do not know the option.
TEST_F(UnixAcceptorTest, PassedDescriptor_IsRefusedByTheKernelThatCan) {
  const UniqueFd connection = Connect();
  constexpr int kPassRights = 83;
  int passes = 1;
  socklen_t size = sizeof passes;
  const bool can = getsockopt(connection.get(), SOL_SOCKET, kPassRights, &passes, &size) == 0;
  EXPECT_EQ(PassDescriptor(connection), can ? EPERM : 0);
}

TEST_F(UnixAcceptorTest, Bytes_ArriveAtTheAcceptedConnection) {
  const UniqueFd connection = Connect();
  ASSERT_EQ(send(connection.get(), "x", 1, MSG_NOSIGNAL), 1);
  std::unique_lock lock(mutex_);
  ASSERT_TRUE(arrived_.wait_for(lock, std::chrono::seconds(10), [&] { return accepted_.valid(); }));
  char byte = 0;
  EXPECT_EQ(recv(accepted_.get(), &byte, 1, 0), 1);
  EXPECT_EQ(byte, 'x');
}

}  // namespace
}  // namespace rocegw::process
