// SPDX-License-Identifier: Apache-2.0
// Rings of messages, seen from the daemon: what a program may do, and what a hostile one cannot.
#include "gateway/session/attach/message_rings.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/session/ring_program.h"

namespace rocegw::session {
namespace {

using testing::LibraryRings;
using testing::MappedRings;

std::vector<uint8_t> Message(size_t size, uint8_t with) { return std::vector<uint8_t>(size, with); }

class Rings : public ::testing::Test {
 protected:
  MessageRings::Request Take() { return rings_->TakeRequest(buffer_); }

  std::unique_ptr<MessageRings> rings_ = std::move(*MessageRings::Create({}));
  MappedRings program_{rings_->fd()};
  MessageRings::Buffer buffer_{};
};

TEST_F(Rings, Begin_TheDaemonSleeps) {
  EXPECT_EQ(program_->daemon_awake, 0u);
  EXPECT_FALSE(rings_->HasRequest());
  EXPECT_EQ(Take().taken, MessageRings::Taken::kNothing);
}

TEST_F(Rings, Request_IsCopiedOnceAndCounted) {
  program_.Put(Message(16, 7));
  EXPECT_TRUE(rings_->HasRequest());
  const auto request = Take();
  EXPECT_EQ(request.taken, MessageRings::Taken::kMessage);
  EXPECT_EQ(request.length, 16u);
  program_->request[0].message[0] = 9;
  EXPECT_EQ(buffer_[0], 7) << "the program changes the request behind the check";
  EXPECT_EQ(program_->requests_taken, 1u);
  EXPECT_FALSE(rings_->HasRequest());
}

TEST_F(Rings, MoreRequestsThanFit_AreBroken) {
  program_->requests = ROCEGW_RING_SLOTS;
  EXPECT_EQ(Take().taken, MessageRings::Taken::kMessage);
  program_->requests = ROCEGW_RING_SLOTS + 2;
  EXPECT_EQ(Take().taken, MessageRings::Taken::kBroken);
}

TEST_F(Rings, CountOfRequestsThatGoesBack_IsBroken) {
  program_.Put(Message(16, 1));
  (void)Take();
  program_->requests = 0;
  EXPECT_EQ(Take().taken, MessageRings::Taken::kBroken);
}

TEST_F(Rings, RequestLongerThanASlot_IsBroken) {
  for (const uint32_t length : {ROCEGW_RING_MESSAGE_MAX + 1, UINT32_MAX}) {
    auto rings = std::move(*MessageRings::Create({}));
    const MappedRings program(rings->fd());
    program->request[0].length = length;
    program->requests = 1;
    EXPECT_EQ(rings->TakeRequest(buffer_).taken, MessageRings::Taken::kBroken) << length;
  }
}

TEST_F(Rings, Closed_TakesWhatIsThereAndNoMore) {
  program_.Put(Message(16, 1));
  program_.Put(Message(16, 2));
  rings_->SetAwake(true);
  rings_->Close();
  EXPECT_EQ(program_->requests, 2 | ROCEGW_RING_CLOSED);
  EXPECT_EQ(program_->daemon_awake, 0u);
  // A hostile program goes on.
  program_->requests = 40;
  EXPECT_EQ(Take().taken, MessageRings::Taken::kMessage);
  EXPECT_EQ(Take().taken, MessageRings::Taken::kMessage);
  EXPECT_EQ(Take().taken, MessageRings::Taken::kNothing);
  EXPECT_FALSE(rings_->PutAnswer(Message(24, 1)));
}

TEST_F(Rings, Library_PutsNothingIntoAClosedRing) {
  LibraryRings library;
  library.Use(*rings_);
  rings_->SetAwake(true);
  const auto message = Message(16, 1);
  EXPECT_EQ(library->PutRequest(message.data(), 16), client::MessageRings::Put::kIs);
  rings_->Close();
  EXPECT_EQ(library->PutRequest(message.data(), 16), client::MessageRings::Put::kNot);
  EXPECT_FALSE(library->open()) << "the library asks for others";
  EXPECT_EQ(program_->requests, 1 | ROCEGW_RING_CLOSED);
}

TEST_F(Rings, Library_WakesADaemonThatSleepsOnce) {
  LibraryRings library;
  library.Use(*rings_);
  const auto message = Message(16, 1);
  EXPECT_EQ(library->PutRequest(message.data(), 16), client::MessageRings::Put::kNeedsWake);
  EXPECT_EQ(library->PutRequest(message.data(), 16), client::MessageRings::Put::kIs);
  EXPECT_TRUE(library->WakeDaemon());
  pollfd look{rings_->wake_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&look, 1, 0), 1);
  rings_->SetAwake(true);
  EXPECT_EQ(library->PutRequest(message.data(), 16), client::MessageRings::Put::kIs);
  rings_->SetAwake(false);
  EXPECT_EQ(library->PutRequest(message.data(), 16), client::MessageRings::Put::kNeedsWake);
  EXPECT_TRUE(rings_->HasRequest());
}

TEST_F(Rings, Library_NoticesThatTheProgramClosedItsEventfd) {
  LibraryRings library;
  const int fd = library.Use(*rings_);
  ASSERT_GE(fd, 0);
  const UniqueFd other(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::dup3(other.get(), fd, O_CLOEXEC), fd);
  EXPECT_FALSE(library->WakeDaemon());
  ::close(fd);
  EXPECT_FALSE(library->WakeDaemon());
}

TEST_F(Rings, Library_PutsNothingBehindAMessageInTheSocket) {
  LibraryRings library;
  library.Use(*rings_);
  rings_->SetAwake(true);
  library->CountSocketRequest();
  const auto message = Message(16, 1);
  EXPECT_EQ(library->PutRequest(message.data(), 16), client::MessageRings::Put::kNot);
  rings_->CountSocketRequest();
  EXPECT_EQ(library->PutRequest(message.data(), 16), client::MessageRings::Put::kIs);
}

TEST_F(Rings, Library_PutsNeitherLongMessagesNorMoreThanFit) {
  LibraryRings library;
  library.Use(*rings_);
  rings_->SetAwake(true);
  const auto message = Message(ROCEGW_RING_MESSAGE_MAX + 1, 1);
  EXPECT_EQ(library->PutRequest(message.data(), ROCEGW_RING_MESSAGE_MAX + 1),
            client::MessageRings::Put::kNot);
  for (uint32_t i = 0; i < ROCEGW_RING_SLOTS; ++i) {
    EXPECT_EQ(library->PutRequest(message.data(), ROCEGW_RING_MESSAGE_MAX),
              client::MessageRings::Put::kIs);
  }
  EXPECT_EQ(library->PutRequest(message.data(), 16), client::MessageRings::Put::kNot);
  (void)Take();
  EXPECT_EQ(library->PutRequest(message.data(), 16), client::MessageRings::Put::kIs);
}

TEST_F(Rings, Answer_IsCopiedAndCounted) {
  EXPECT_TRUE(rings_->PutAnswer(Message(24, 3)));
  EXPECT_EQ(program_->answers, 1u);
  EXPECT_EQ(program_->answer[0].length, 24u);
  EXPECT_EQ(program_->answer[0].message[23], 3);
}

TEST_F(Rings, ThreadThatWaits_IsWokenByTheDaemon) {
  LibraryRings library;
  library.Use(*rings_);
  constexpr uint64_t kRequest = ROCEGW_RING_SLOTS + 3;
  library->BeginWait(kRequest);
  EXPECT_EQ(program_->waits[3], 1u);
  std::thread daemon([&] { rings_->WakeWaiter(kRequest); });
  EXPECT_TRUE(library->Wait(kRequest, int64_t{60} * 1000000000));
  daemon.join();
  EXPECT_EQ(program_->waits[3], 0u);
  EXPECT_TRUE(library->Wait(kRequest, int64_t{60} * 1000000000)) << "it does not sleep";
}

TEST_F(Rings, Closed_WakesAllThreadsThatWait) {
  LibraryRings library;
  library.Use(*rings_);
  std::vector<std::thread> waiting;
  for (uint64_t i = 0; i < 8; ++i) {
    library->BeginWait(i);
    waiting.emplace_back(
        [&, i] { EXPECT_TRUE(library->Wait(i, int64_t{60} * 1000000000)) << "not woken"; });
  }
  EXPECT_TRUE(library->in_use());
  rings_->Close();
  for (std::thread& thread : waiting) thread.join();
  EXPECT_FALSE(library->in_use());
}

TEST_F(Rings, WordsOfWaitsThatAHostileProgramWrites_WakeNobodyElse) {
  for (uint32_t& wait : program_->waits) wait = UINT32_MAX;
  rings_->WakeWaiter(UINT64_MAX);
  EXPECT_EQ(program_->waits[ROCEGW_RING_SLOTS - 1], 0u);
  EXPECT_EQ(program_->waits[0], UINT32_MAX);
}

TEST_F(Rings, Answer_GoesOverTheSocketWhileOneIsThere) {
  rings_->CountSocketAnswer();
  EXPECT_EQ(program_->socket_answers, 1u);
  EXPECT_FALSE(rings_->PutAnswer(Message(24, 1)));
  program_->socket_answers_taken = 1;
  EXPECT_TRUE(rings_->PutAnswer(Message(24, 1)));
}

TEST_F(Rings, Answer_ThatDoesNotFit_GoesOverTheSocket) {
  EXPECT_FALSE(rings_->PutAnswer(Message(ROCEGW_RING_MESSAGE_MAX + 1, 1)));
  for (uint32_t i = 0; i < ROCEGW_RING_SLOTS; ++i)
    EXPECT_TRUE(rings_->PutAnswer(Message(ROCEGW_RING_MESSAGE_MAX, 1)));
  EXPECT_FALSE(rings_->PutAnswer(Message(24, 1)));
  program_->answers_taken = 1;
  EXPECT_TRUE(rings_->PutAnswer(Message(24, 1)));
}

TEST_F(Rings, ProgramThatTookAnswersThatDoNotExist_GetsNoneByTheRing) {
  program_->answers_taken = 5;
  EXPECT_FALSE(rings_->PutAnswer(Message(24, 1)));
}

TEST_F(Rings, Library_TakesAnswersInOrder) {
  LibraryRings library;
  library.Use(*rings_);
  std::array<uint8_t, ROCEGW_RING_MESSAGE_MAX> message{};
  uint32_t size = 0;
  EXPECT_FALSE(library->TakeAnswer(message.data(), &size));
  for (uint8_t i = 0; i < 3; ++i) EXPECT_TRUE(rings_->PutAnswer(Message(24u + i, i)));
  for (uint8_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(library->TakeAnswer(message.data(), &size));
    EXPECT_EQ(size, 24u + i);
    EXPECT_EQ(message[0], i);
  }
  EXPECT_FALSE(library->TakeAnswer(message.data(), &size));
}

TEST_F(Rings, Destroyed_SayThatTheDaemonDoesNotLook) {
  rings_->SetAwake(true);
  EXPECT_EQ(program_->daemon_awake, 1u);
  rings_.reset();
  EXPECT_EQ(program_->daemon_awake, 0u);
}

}  // namespace
}  // namespace rocegw::session
