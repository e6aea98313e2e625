// SPDX-License-Identifier: Apache-2.0
// The process that receives descriptors: what it gives to the daemon, and when it ends. The test
// has no threads, as the daemon has none when it starts the process.
#include "gateway/session/descriptors/receiver_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gateway/base/descriptor_message.h"
#include "gateway/base/timing/monotonic_clock.h"
#include "gateway/session/descriptors/unread_messages.h"

namespace rocegw::session {
namespace {

struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    program.Reset(ends[0]);
    daemon.Reset(ends[1]);
  }
  UniqueFd program;
  UniqueFd daemon;
};

std::vector<pid_t> ChildrenOf(pid_t process) {
  const std::string id = std::to_string(process);
  std::ifstream children("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> all;
  for (pid_t child = 0; children >> child;) all.push_back(child);
  return all;
}

// The processes that wait for messages or handle them.
std::vector<pid_t> Servers() {
  std::vector<pid_t> all;
  for (const pid_t child : ChildrenOf(getpid()))
    for (const pid_t server : ChildrenOf(child)) all.push_back(server);
  return all;
}

class ReceiverProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // The processes become children of the test.
    ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    auto started = ReceiverProcess::Start();
    ASSERT_TRUE(started.ok()) << started.status().text();
    receiver_ = std::move(*started);
  }

  void TearDown() override {
    receiver_.reset();
    while (wait(nullptr) > 0) {
    }
  }

  // Passes descriptors, and takes them.
  PassedDescriptor Pass(std::span<const int> fds, const WantedDescriptor& wanted) {
    const std::array<uint8_t, 2> bytes{1, 2};
    EXPECT_EQ(SendDescriptors(pair_.program.get(), bytes, fds, 0), 2);
    std::vector<UniqueFd> left;
    PassedDescriptor passed = receiver_->Take(pair_.daemon.get(), wanted, left);
    receiver_->Finish(left);
    EXPECT_TRUE(left.empty());
    return passed;
  }
  PassedDescriptor PassOne(int fd, const WantedDescriptor& wanted) {
    return Pass(std::span(&fd, 1), wanted);
  }

  Pair pair_;
  std::shared_ptr<ReceiverProcess> receiver_;
};

TEST_F(ReceiverProcessTest, MemoryOfAProcess_IsGiven) {
  const UniqueFd memory(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  const PassedDescriptor passed = PassOne(memory.get(), {PassedKind::kProcessMemory});
  ASSERT_TRUE(passed.status.ok()) << passed.status.text();
  // The memory is that of the test, not of the process that received it.
  const int value = 4711;
  int read = 0;
  EXPECT_EQ(pread(passed.fd.get(), &read, sizeof read, reinterpret_cast<off_t>(&value)),
            static_cast<ssize_t>(sizeof read));
  EXPECT_EQ(read, value);
}

TEST_F(ReceiverProcessTest, OtherDescriptor_IsRefusedAndNotGiven) {
  const UniqueFd event(eventfd(0, EFD_CLOEXEC));
  const PassedDescriptor passed = PassOne(event.get(), {PassedKind::kProcessMemory});
  EXPECT_EQ(passed.status.error(), EINVAL);
  EXPECT_EQ(passed.status.text(), "memory descriptor is not a file of proc");
  EXPECT_FALSE(passed.fd.valid());
}

TEST_F(ReceiverProcessTest, FileIsGivenAsAName) {
  const std::string path = ::testing::TempDir() + "receiver_process_test";
  const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  (void)std::remove(path.c_str());
  struct stat about {};
  ASSERT_EQ(fstat(file.get(), &about), 0);
  const PassedDescriptor passed = PassOne(file.get(), {PassedKind::kFile});
  ASSERT_TRUE(passed.status.ok()) << passed.status.text();
  EXPECT_EQ(passed.inode, about.st_ino);
  EXPECT_NE(fcntl(passed.fd.get(), F_GETFL) & O_PATH, 0);
}

TEST_F(ReceiverProcessTest, EventChannel_OnlyThatOne) {
  const Pair channel;
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  ASSERT_EQ(getsockopt(channel.program.get(), SOL_SOCKET, SO_COOKIE, &cookie, &size), 0);
  const WantedDescriptor wanted{PassedKind::kEventChannel, cookie};
  EXPECT_TRUE(PassOne(channel.program.get(), wanted).fd.valid());
  const PassedDescriptor other = PassOne(channel.daemon.get(), wanted);
  EXPECT_TRUE(other.status.ok());
  EXPECT_FALSE(other.fd.valid());
}

TEST_F(ReceiverProcessTest, ManyDescriptors_AreRefused) {
  const UniqueFd event(eventfd(0, EFD_CLOEXEC));
  const std::vector<int> copies(kMostDescriptors, event.get());
  EXPECT_EQ(Pass(copies, {PassedKind::kFile}).status.error(), EINVAL);
}

TEST_F(ReceiverProcessTest, TakesOnlyTheNextMessage) {
  const UniqueFd event(eventfd(0, EFD_CLOEXEC));
  for (int i = 0; i < 3; ++i) (void)PassOne(event.get(), {PassedKind::kFile});
  ASSERT_EQ(send(pair_.program.get(), "next", 4, 0), 4);
  (void)PassOne(event.get(), {PassedKind::kFile});  // takes the one before its own
  std::array<uint8_t, 4> bytes{};
  const DescriptorMessage message = ReceiveDescriptors(pair_.daemon.get(), bytes, MSG_DONTWAIT);
  EXPECT_EQ(message.fds.size(), 1u);
}

// A process for each program that starts would cost more than all else that the daemon does for it.
TEST_F(ReceiverProcessTest, MessageAsWanted_ItsProcessTakesTheNextOne) {
  const UniqueFd memory(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  // A process that has not run for a moment counts as held up, and another one takes its place.
  bool kept = false;
  for (int i = 0; i < 1000 && !kept; ++i) {
    const std::vector<pid_t> before = Servers();
    for (int n = 0; n < 5; ++n)
      ASSERT_FALSE(PassOne(memory.get(), {PassedKind::kProcessMemory}).costly);
    kept = Servers() == before;
  }
  EXPECT_TRUE(kept);
  // The close of what was not wanted could be held up.
  const std::vector<pid_t> before = Servers();
  const UniqueFd event(eventfd(0, EFD_CLOEXEC));
  EXPECT_TRUE(PassOne(event.get(), {PassedKind::kProcessMemory}).costly);
  const TimePoint begun = MonotonicNow();
  while (Servers() == before && MonotonicNow() - begun < Seconds(10)) ::sched_yield();
  EXPECT_NE(Servers(), before);
}

TEST_F(ReceiverProcessTest, UnreadMessages_AreDiscardedWithTheirDescriptors) {
  Pair held;
  const std::vector<int> copies(kMostDescriptors, held.daemon.get());
  const std::array<uint8_t, 1> byte{1};
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(SendDescriptors(pair_.program.get(), byte, copies, 0), 1);
    ASSERT_EQ(send(pair_.program.get(), "", 0, 0), 0);
    ASSERT_EQ(send(pair_.program.get(), "ab", 2, 0), 2);
  }
  ASSERT_EQ(shutdown(pair_.daemon.get(), SHUT_RDWR), 0);
  EXPECT_TRUE(receiver_->Discard(pair_.daemon.get()));
  EXPECT_FALSE(HasUnreadMessage(pair_.daemon.get()));
  held.daemon.Reset();
  char none = 0;
  EXPECT_EQ(recv(held.program.get(), &none, sizeof none, 0), 0) << "nobody has the other end";
}

TEST_F(ReceiverProcessTest, EndsWithTheDaemon) {
  receiver_.reset();
  // The receiver, sometimes its child, and the process that keeps sockets.
  int ended = 0;
  for (int status = 0; wait(&status) > 0; ++ended)
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_GE(ended, 2);
}

TEST_F(ReceiverProcessTest, KeptSocket_IsOpenUntilItIsReleased) {
  receiver_->Keep(pair_.daemon.get());
  // The process works through its orders in their order, and closes nothing by itself.
  Pair other;
  receiver_->Keep(other.daemon.get());
  receiver_->Release(other.daemon.get());
  other.daemon.Reset();
  char byte = 0;
  EXPECT_EQ(recv(other.program.get(), &byte, sizeof byte, 0), 0) << "the end of the connection";
  pair_.daemon.Reset();
  EXPECT_EQ(send(pair_.program.get(), "kept", 4, MSG_NOSIGNAL), 4);
  receiver_.reset();
  EXPECT_EQ(recv(pair_.program.get(), &byte, sizeof byte, 0), -1) << "the message was not read";
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(ReceiverProcessTest, SignalsToTheWholeServiceDoNotEndIt) {
  const UniqueFd event(eventfd(0, EFD_CLOEXEC));
  EXPECT_TRUE(PassOne(event.get(), {PassedKind::kFile}).status.ok());
  const std::vector<pid_t> children = ChildrenOf(getpid());
  for (const pid_t process : children)
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ASSERT_EQ(kill(process, signal), 0);
  EXPECT_EQ(children.size(), 2u);
  EXPECT_TRUE(PassOne(event.get(), {PassedKind::kFile}).status.ok());
}

}  // namespace
}  // namespace rocegw::session
