// SPDX-License-Identifier: Apache-2.0
// Messages that pass descriptors, by the hundred: they take none of the daemon's numbers.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <future>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "gateway/base/descriptor_message.h"
#include "gateway/session/attach/message_socket.h"
#include "gateway/session/descriptors/descriptor_receiver.h"

namespace rocegw::session {
namespace {

constexpr size_t kMost = kMostDescriptors;

size_t Entries(const char* directory) {
  return static_cast<size_t>(std::ranges::distance(std::filesystem::directory_iterator(directory),
                                                   std::filesystem::directory_iterator()));
}
size_t OpenDescriptors() { return Entries("/proc/self/fd"); }

// Sends one message with as many descriptors as the kernel takes.
void SendMany(int socket) {
  const UniqueFd event(eventfd(0, EFD_CLOEXEC));
  const std::vector<int> copies(kMost, event.get());
  const uint8_t byte = 0;
  ASSERT_EQ(SendDescriptors(socket, std::span(&byte, 1), copies, 0), 1);
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

TEST(PassedDescriptors, OfManyPrograms_TakeNoNumbers) {
  std::vector<Pair> pairs(32);
  const size_t before = OpenDescriptors();
  for (Pair& pair : pairs) {
    SendMany(pair.program.get());
    const std::shared_ptr<ClientCallQueue> call_queue = ClientCallQueue::Make();
    MessageSocket socket(
        ProgramConnection(std::move(pair.daemon), call_queue, std::make_shared<ReceiverHere>()));
    const MessageSocket::Received received = socket.Receive();
    EXPECT_EQ(received.outcome, MessageSocket::Outcome::kMessage);
    EXPECT_TRUE(received.passes);
    EXPECT_EQ(OpenDescriptors(), before);
    pair.daemon.Reset(dup(socket.fd()));
    socket.Close();
    AwaitCalls(*call_queue);
  }
}

TEST(PassedDescriptors, MessageThatPassesSome_StaysTheNextOne) {
  Pair pair;
  SendMany(pair.program.get());
  ASSERT_EQ(send(pair.program.get(), "next", 4, 0), 4);
  MessageSocket socket(ProgramConnection(std::move(pair.daemon), ClientCallQueue::Make(),
                                         std::make_shared<ReceiverHere>()));
  EXPECT_TRUE(socket.Receive().passes);
  EXPECT_TRUE(socket.Receive().passes);
  ReceiverHere receiver;
  std::vector<UniqueFd> left;
  EXPECT_EQ(receiver.Take(socket.fd(), {PassedKind::kFile}, left).status.error(), EINVAL);
  EXPECT_EQ(left.size(), kMost);
  const MessageSocket::Received next = socket.Receive();
  EXPECT_FALSE(next.passes);
  EXPECT_EQ(next.bytes.size(), 4u);
  EXPECT_EQ(socket.Receive().outcome, MessageSocket::Outcome::kNothing);
}

TEST(PassedDescriptors, OfUnreadMessages_TakeNoNumbers) {
  Pair pair;
  for (int i = 0; i < 8; ++i) SendMany(pair.program.get());
  const size_t before = OpenDescriptors();
  {
    const BlockedCallQueue blocked;
    ProgramConnection(std::move(pair.daemon), blocked.call_queue, std::make_shared<ReceiverHere>())
        .Close();
    EXPECT_EQ(OpenDescriptors(), before);
    EXPECT_EQ(blocked.call_queue->held(), 2u) << "the blocked call and the close";
  }
  EXPECT_EQ(OpenDescriptors(), before - 1);
}

// Counts what it is asked for. The first `refusals` times it discards nothing.
class Counting final : public DescriptorReceiver {
 public:
  PassedDescriptor Take(int socket, const WantedDescriptor& wanted,
                        std::vector<UniqueFd>& left) override {
    ++taken;
    return here_.Take(socket, wanted, left);
  }
  void Finish(std::vector<UniqueFd>& left) override { here_.Finish(left); }
  bool Discard(int socket) override {
    ++discarded;
    if (discarded <= refusals) return false;
    return here_.Discard(socket);
  }
  void Keep(int) override { ++kept; }
  void Release(int) override { --kept; }
  int kept = 0;
  int taken = 0;
  int discarded = 0;
  int refusals = 0;

 private:
  ReceiverHere here_;
};

// A process receives for the daemon. One for each message would let a program that leaves hundreds
// in each of its connections spend the daemon's time by sending.
TEST(PassedDescriptors, UnreadMessages_AreDiscardedTogether) {
  Pair pair;
  for (int i = 0; i < 8; ++i) SendMany(pair.program.get());
  const std::shared_ptr<ClientCallQueue> call_queue = ClientCallQueue::Make();
  const auto receiver = std::make_shared<Counting>();
  ProgramConnection(std::move(pair.daemon), call_queue, receiver).Close();
  AwaitCalls(*call_queue);
  EXPECT_EQ(receiver->taken, 0);
  EXPECT_EQ(receiver->discarded, 1);
  EXPECT_EQ(receiver->kept, 0);
}

TEST(PassedDescriptors, UnreadMessagesThatCannotBeDiscarded_AreTriedAgain) {
  Pair pair;
  SendMany(pair.program.get());
  const std::shared_ptr<ClientCallQueue> call_queue = ClientCallQueue::Make();
  const auto receiver = std::make_shared<Counting>();
  receiver->refusals = 2;
  ProgramConnection(std::move(pair.daemon), call_queue, receiver).Close();
  AwaitCalls(*call_queue);
  EXPECT_EQ(receiver->discarded, 3);
  EXPECT_EQ(receiver->kept, 0);
}

TEST(PassedDescriptors, SocketWithAsManyMessagesAsItTakes_IsReleased) {
  Pair pair;
  const int large = 64 << 20;  // as much as the kernel allows (net.core.wmem_max)
  ASSERT_EQ(setsockopt(pair.program.get(), SOL_SOCKET, SO_SNDBUF, &large, sizeof large), 0);
  while (send(pair.program.get(), "a", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) {
  }
  const std::shared_ptr<ClientCallQueue> call_queue = ClientCallQueue::Make();
  const auto receiver = std::make_shared<Counting>();
  ProgramConnection(std::move(pair.daemon), call_queue, receiver).Close();
  AwaitCalls(*call_queue);
  EXPECT_EQ(receiver->kept, 0);
}

TEST(PassedDescriptors, ConnectionWithoutMessages_IsClosedAtOnce) {
  Pair pair;
  const BlockedCallQueue blocked;
  ProgramConnection(std::move(pair.daemon), blocked.call_queue, std::make_shared<ReceiverHere>())
      .Close();
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
  ProgramConnection(std::move(pair.daemon), call_queue, std::make_shared<ReceiverHere>()).Close();
  AwaitCalls(*call_queue);
  char answer[6];
  EXPECT_EQ(recv(pair.program.get(), answer, sizeof answer, 0), 6);
  EXPECT_EQ(recv(pair.program.get(), answer, sizeof answer, 0), 0);
}

}  // namespace
}  // namespace rocegw::session
