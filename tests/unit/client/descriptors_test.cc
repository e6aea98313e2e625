// SPDX-License-Identifier: Apache-2.0
// Descriptors of the library in a program that closes all descriptors, as daemons and shells do:
// none stays open without need, and a number that the program reuses is not touched.
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <set>

#include "tests/unit/client/verbs_fixture.h"

namespace rocegw::testing {
namespace {

std::set<int> OpenDescriptors() {
  std::set<int> found;
  for (int fd = 0; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) found.insert(fd);
  }
  return found;
}

// Returns descriptors opened since then, which are the library's.
std::set<int> Since(const std::set<int>& before) {
  std::set<int> later = OpenDescriptors();
  for (const int fd : before) later.erase(fd);
  return later;
}

TEST_F(VerbsTest, NothingStaysOpen_AfterTheListIsFreedAndTheDeviceClosed) {
  Start();
  // The test's daemon has descriptors in this process, too: only the library's range is counted.
  const auto library = [] {
    size_t sockets = 0;
    for (const int fd : OpenDescriptors()) {
      if (fd >= 100) ++sockets;
    }
    return sockets;
  };
  const size_t before = library();
  ibv_device** list = ibv_get_device_list(nullptr);
  ASSERT_NE(nullptr, list);
  EXPECT_GT(library(), before);
  ibv_context* context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  ASSERT_NE(nullptr, context);
  EXPECT_GT(library(), before);
  ibv_pd* pd = ibv_alloc_pd(context);
  char buffer[64];
  ibv_mr* mr = ibv_reg_mr(pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(nullptr, mr);
  EXPECT_EQ(0, ibv_dereg_mr(mr));
  EXPECT_EQ(0, ibv_dealloc_pd(pd));
  EXPECT_EQ(0, ibv_close_device(context));
  EXPECT_EQ(before, library());
  EXPECT_TRUE(daemon_->WaitForHangups(1));
}

TEST_F(VerbsTest, ListAfterListWasFreed_AttachesAnew) {
  Start();
  for (size_t i = 1; i <= 3; ++i) {
    ASSERT_NE(nullptr, FindDevice("rocegw0"));
    EXPECT_EQ(i, daemon_->connections());
  }
}

// In the child the numbers become its own files. The parent's test objects are dead there, so the
// child creates its own first.
int UseAfterReplacing(const std::string& what) {
  const std::set<int> before = OpenDescriptors();
  ibv_device** list = ibv_get_device_list(nullptr);
  ibv_context* context = list != nullptr ? ibv_open_device(list[0]) : nullptr;
  if (context == nullptr) return 1;
  ibv_pd* pd = ibv_alloc_pd(context);
  if (pd == nullptr) return 2;
  std::vector<int> peers;
  for (const int fd : Since(before)) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends) != 0) return 3;
    if (dup2(ends[0], fd) != fd) return 4;
    close(ends[0]);
    peers.push_back(ends[1]);
  }
  if (what == "request" && (ibv_alloc_pd(context) != nullptr || errno != EIO)) return 5;
  ibv_async_event event;
  if (what == "event" && (ibv_get_async_event(context, &event) != -1 || errno != EBADF)) return 6;
  if (what == "list" && (ibv_free_device_list(list), list = ibv_get_device_list(nullptr),
                         list == nullptr || list[0] == nullptr)) {
    return 7;
  }
  if (ibv_dealloc_pd(pd) != 0 || ibv_close_device(context) != 0) return 8;
  char byte;
  for (const int peer : peers) {
    if (recv(peer, &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN) return 9;
  }
  return 0;
}

class ReplacedTest : public VerbsTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ReplacedTest, NumbersOfTheProgram_AreLeftAlone) {
  Start();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(UseAfterReplacing(GetParam()));
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(0, status >> 8) << "exit status";
  EXPECT_EQ(0, status & 0x7f) << "signal";
}
INSTANTIATE_TEST_SUITE_P(Uses, ReplacedTest,
                         ::testing::Values("request", "event", "list", "nothing"));

TEST_F(QpTest, PostSend_WakeDescriptorIsTheProgramsFile_WorkIsFlushed) {
  ToState(IBV_QPS_RTS);
  const FakeQp fake = Fake();
  daemon_->SetNeedWakeup(fake.reply.worker, true);
  int own[256] = {};
  int count = 0;
  // All eventfds of the library become the program's own.
  for (const int fd : OpenDescriptors()) {
    if (fcntl(fd, F_GETSIG) == 0) continue;
    own[count] = eventfd(0, EFD_NONBLOCK);
    ASSERT_EQ(fd, dup2(own[count], fd));
    ++count;
  }
  ASSERT_GT(count, 0);
  ibv_send_wr wr{};
  wr.wr_id = 7;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp_, &wr, &bad));
  ibv_wc wc{};
  ASSERT_EQ(1, ibv_poll_cq(cq_, 1, &wc));
  EXPECT_EQ(7u, wc.wr_id);
  EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
  uint64_t value = 0;
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(-1, read(own[i], &value, sizeof value));
    close(own[i]);
  }
}

}  // namespace
}  // namespace rocegw::testing
