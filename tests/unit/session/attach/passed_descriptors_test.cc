// SPDX-License-Identifier: Apache-2.0
// Descriptors that programs pass by the hundred: they take few of the daemon's numbers and few
// threads, however slowly they are closed.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "gateway/session/attach/message_socket.h"

namespace rocegw::session {
namespace {

constexpr size_t kMost = 253;  // SCM_MAX_FD

size_t Entries(const char* directory) {
  return static_cast<size_t>(std::ranges::distance(std::filesystem::directory_iterator(directory),
                                                   std::filesystem::directory_iterator()));
}
size_t OpenDescriptors() { return Entries("/proc/self/fd"); }

// Sends one message with as many descriptors as the kernel takes.
void SendMany(int socket) {
  const UniqueFd event(eventfd(0, EFD_CLOEXEC));
  const std::vector<int> copies(kMost, event.get());
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(kMost * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(kMost * sizeof(int));
  std::memcpy(CMSG_DATA(header), copies.data(), kMost * sizeof(int));
  ASSERT_EQ(sendmsg(socket, &message, MSG_NOSIGNAL), 1);
}

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

// Waits for the end of all calls of a call queue: the next test counts descriptors.
void AwaitCalls(const ClientCallQueue& call_queue) {
  while (call_queue.held() != 0) std::this_thread::yield();
}

// A call queue with a call that does not return before the object's end.
class BlockedCallQueue {
 public:
  BlockedCallQueue() {
    call_queue->Run([until = release_.get_future().share()] { until.wait(); });
  }
  ~BlockedCallQueue() {
    release_.set_value();
    AwaitCalls(*call_queue);
  }
  const std::shared_ptr<ClientCallQueue> call_queue = ClientCallQueue::Make();

 private:
  std::promise<void> release_;
};

TEST(PassedDescriptors, OfManyPrograms_TakeFewNumbers) {
  const size_t before = OpenDescriptors();
  constexpr size_t kPrograms = 32;
  std::vector<Pair> pairs(kPrograms);
  std::vector<std::unique_ptr<BlockedCallQueue>> call_queues;
  for (Pair& pair : pairs) {
    SendMany(pair.program.get());
    call_queues.push_back(std::make_unique<BlockedCallQueue>());
    MessageSocket socket(std::move(pair.daemon), call_queues.back()->call_queue);
    EXPECT_EQ(socket.Receive().outcome, MessageSocket::Outcome::kBroken);
  }
  // The look at a further message takes one number.
  EXPECT_LE(OpenDescriptors(), before + 3 * kPrograms + 3 * kMost);
  call_queues.clear();
  pairs.clear();
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(PassedDescriptors, OfOneMessage_AreClosedByOneThread) {
  const size_t threads = Entries("/proc/self/task");
  const std::shared_ptr<ClientCallQueue> call_queue = ClientCallQueue::Make();
  Pair pair;
  SendMany(pair.program.get());
  MessageSocket socket(std::move(pair.daemon), call_queue);
  EXPECT_EQ(socket.Receive().outcome, MessageSocket::Outcome::kBroken);
  EXPECT_LE(Entries("/proc/self/task"), threads + 1);
  AwaitCalls(*call_queue);
}

TEST(PassedDescriptors, OfUnreadMessages_TakeNoNumbers) {
  Pair pair;
  for (int i = 0; i < 8; ++i) SendMany(pair.program.get());
  const size_t before = OpenDescriptors();
  {
    const BlockedCallQueue blocked;
    CloseConnection(std::move(pair.daemon), blocked.call_queue);
    EXPECT_EQ(OpenDescriptors(), before);
    EXPECT_EQ(blocked.call_queue->held(), 2u) << "the blocked call and the close";
  }
  EXPECT_EQ(OpenDescriptors(), before - 1);
}

TEST(PassedDescriptors, ConnectionWithoutMessages_IsClosedAtOnce) {
  Pair pair;
  const BlockedCallQueue blocked;
  CloseConnection(std::move(pair.daemon), blocked.call_queue);
  char byte;
  EXPECT_EQ(recv(pair.program.get(), &byte, 1, MSG_DONTWAIT), 0);
}

TEST(PassedDescriptors, UnreadMessage_DoesNotTurnTheAnswerIntoAnError) {
  Pair pair;
  const std::shared_ptr<ClientCallQueue> call_queue = ClientCallQueue::Make();
  ASSERT_EQ(send(pair.program.get(), "a", 1, 0), 1);
  ASSERT_EQ(send(pair.program.get(), "", 0, 0), 0);
  ASSERT_EQ(send(pair.program.get(), "b", 1, 0), 1);
  ASSERT_EQ(send(pair.daemon.get(), "answer", 6, 0), 6);
  CloseConnection(std::move(pair.daemon), call_queue);
  AwaitCalls(*call_queue);
  char answer[6];
  EXPECT_EQ(recv(pair.program.get(), answer, sizeof answer, 0), 6);
  EXPECT_EQ(recv(pair.program.get(), answer, sizeof answer, 0), 0);
}

}  // namespace
}  // namespace rocegw::session
