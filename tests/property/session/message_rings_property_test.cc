// SPDX-License-Identifier: Apache-2.0
// Messages between a program and the daemon, over rings and a socket, against the simplest model:
// all arrive, once, in order, whatever each side does in between. And nobody sleeps for ever.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "gateway/session/attach/program_messages.h"
#include "tests/support/random.h"
#include "tests/support/session/ring_program.h"

namespace rocegw::testing {
namespace {

using session::MessageRings;
using session::MessageSocket;
using session::ProgramMessages;

constexpr uint32_t kAnswer = ROCEGW_MSG_ALLOC_PD;  // any type of both directions

std::vector<uint8_t> Numbered(uint64_t number, size_t size) {
  std::vector<uint8_t> bytes(size);
  rocegw_reply header{};
  header.type = kAnswer;
  header.length = static_cast<uint32_t>(size);
  header.request_id = number;
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}
rocegw_reply HeaderOf(std::span<const uint8_t> bytes) {
  rocegw_reply header{};
  std::memcpy(&header, bytes.data(), std::min(bytes.size(), sizeof header));
  return header;
}
bool Readable(int socket) {
  pollfd look{socket, POLLIN, 0};
  return ::poll(&look, 1, 0) == 1;
}

// Both ends of a connection. The program's end does what client::Session does.
class Ends {
 public:
  Ends() {
    std::array<int, 2> ends{};
    (void)::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data());
    program_.Reset(ends[1]);
    daemon_ = MakeDaemon(UniqueFd(ends[0]));
    NewRings();
  }

  // The daemon makes rings, and the program gets them by a message of the socket.
  void NewRings() {
    auto rings = std::move(*MessageRings::Create({}));
    MessageRings& made = *rings;
    daemon_->UseRings(std::move(rings));
    EXPECT_GE(library_.Use(made), 0);
    wake_fd_ = made.wake_fd();
  }

  void SendRequest(std::span<const uint8_t> message) {
    const auto put = library_->PutRequest(message.data(), static_cast<uint32_t>(message.size()));
    if (put == client::MessageRings::Put::kNeedsWake) {
      EXPECT_TRUE(library_->WakeDaemon());
    } else if (put == client::MessageRings::Put::kNot) {
      library_->CountSocketRequest();
      EXPECT_EQ(::send(program_.get(), message.data(), message.size(), 0),
                static_cast<ssize_t>(message.size()));
    }
  }
  // Takes all answers that are there.
  template <typename F>
  void ReceiveAnswers(F&& on_answer) {
    std::array<uint8_t, ROCEGW_MESSAGE_MAX> message{};
    uint32_t size = 0;
    for (;;) {
      while (library_->TakeAnswer(message.data(), &size))
        on_answer(HeaderOf({message.data(), size}));
      const ssize_t got = ::recv(program_.get(), message.data(), message.size(), MSG_DONTWAIT);
      if (got <= 0) return;
      // Messages in the ring are older.
      std::array<uint8_t, ROCEGW_MESSAGE_MAX> earlier{};
      while (library_->TakeAnswer(earlier.data(), &size))
        on_answer(HeaderOf({earlier.data(), size}));
      library_->CountSocketAnswer();
      on_answer(HeaderOf({message.data(), static_cast<size_t>(got)}));
    }
  }
  // Takes answers as a thread does that waits for the one with this number.
  template <typename F>
  void AwaitAnswer(uint64_t number, const uint64_t& known, F&& on_answer) {
    for (;;) {
      ReceiveAnswers(on_answer);
      if (known >= number) return;
      library_->BeginWait(number);
      if (library_->HasAnswer() || library_->SocketHasAnswers()) continue;
      ASSERT_TRUE(library_->Wait(number, int64_t{30} * 1000000000)) << "nobody wakes it";
    }
  }
  bool Woken() const { return Readable(wake_fd_); }
  void TakeWake() const {
    uint64_t value = 0;
    if (Woken()) (void)!::read(wake_fd_, &value, sizeof value);
  }
  int wake_fd() const { return wake_fd_; }

  // Another daemon goes on with the socket.
  void ReplaceDaemon() {
    UniqueFd socket(::dup(daemon_->socket().fd()));
    replaced_.push_back(std::move(daemon_));
    daemon_ = MakeDaemon(std::move(socket));
  }

  ProgramMessages& daemon() { return *daemon_; }
  // The daemon does this at the end of a round.
  void WakeWaiters() { wakes_.Wake(); }
  client::MessageRings& library() { return *library_.operator->(); }
  int program() const { return program_.get(); }

 private:
  std::unique_ptr<ProgramMessages> MakeDaemon(UniqueFd socket) {
    return std::make_unique<ProgramMessages>(
        session::ProgramConnection(std::move(socket), session::ClientCallQueue::Make(),
                                   std::make_shared<session::ReceiverHere>()),
        wakes_);
  }

  session::PendingWakes wakes_;
  UniqueFd program_;
  int wake_fd_ = -1;
  std::unique_ptr<ProgramMessages> daemon_;
  // Their destruction would close the connection.
  std::vector<std::unique_ptr<ProgramMessages>> replaced_;
  LibraryRings library_;
};

size_t SomeSize(Random& random) {
  return random.Below(8) == 0 ? random.Between(sizeof(rocegw_reply), ROCEGW_MESSAGE_MAX)
                              : random.Between(sizeof(rocegw_reply), 600);
}

void RandomSteps(uint64_t seed, int steps) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  Ends ends;
  uint64_t asked = 0, executed = 0, answered = 0, known = 0;
  bool daemon_sleeps = true;
  const auto execute = [&](const MessageSocket::Received& received) {
    ASSERT_EQ(received.outcome, MessageSocket::Outcome::kMessage) << received.reason;
    const rocegw_reply header = HeaderOf(received.bytes);
    EXPECT_EQ(header.request_id, ++executed);
    EXPECT_EQ(header.length, received.bytes.size());
  };
  const auto execute_some = [&](size_t most, bool socket) {
    for (size_t i = 0; i < most; ++i) {
      const auto received = ends.daemon().Receive(socket);
      if (received.outcome == MessageSocket::Outcome::kNothing) return;
      execute(received);
    }
  };
  const auto learn = [&](const rocegw_reply& header) { EXPECT_EQ(header.request_id, ++known); };
  for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
    switch (random.Below(9)) {
      case 0:
      case 1:
        // The socket holds fewer messages than this.
        for (size_t n = random.Between(1, 70); n != 0 && asked - executed < 70; --n)
          ends.SendRequest(Numbered(++asked, SomeSize(random)));
        break;
      case 2:
      case 3:
        execute_some(random.Between(1, 20), random.Coin());
        break;
      case 4:
      case 5:
        for (size_t n = random.Between(1, 70); n != 0 && answered - known < 70; --n)
          ends.daemon().Send(Numbered(++answered, SomeSize(random)), -1);
        break;
      case 6:
        ends.daemon().socket().Drain();
        ends.ReceiveAnswers(learn);
        break;
      case 7:
        daemon_sleeps = random.Coin();
        ends.TakeWake();
        ends.daemon().SetAwake(!daemon_sleeps);
        if (daemon_sleeps && ends.daemon().HasRequest()) {
          ends.daemon().SetAwake(true);
          daemon_sleeps = false;
        }
        break;
      case 8:
        if (random.Below(4) != 0) break;
        // Before the program gets new rings it has taken all answers of the old ones.
        ends.daemon().CloseRings();
        while (ends.daemon().closing()) execute(ends.daemon().Receive(false));
        while (asked != executed) execute_some(20, true);
        while (answered != known) {
          ends.daemon().socket().Drain();
          ends.ReceiveAnswers(learn);
        }
        // The program finds the ring closed.
        ends.SendRequest(Numbered(++asked, 24));
        while (asked != executed) execute_some(20, true);
        ends.NewRings();
        daemon_sleeps = true;
        break;
    }
    // A daemon that sleeps is woken by its eventfd or its socket.
    if (daemon_sleeps && asked != executed) {
      EXPECT_TRUE(ends.Woken() || Readable(ends.daemon().socket().fd()) ||
                  ends.daemon().HasRequest());
    }
  }
  while (asked != executed && !::testing::Test::HasFailure()) execute_some(20, true);
  while (answered != known && !::testing::Test::HasFailure()) {
    ends.daemon().socket().Drain();
    ends.ReceiveAnswers(learn);
  }
}

TEST(MessageRingsProperty, RandomSteps_DeliverEachMessageOnceAndInOrder) {
  const uint64_t seed = TestSeed(20261129);
  for (uint64_t i = 0; i < 30 && !::testing::Test::HasFailure(); ++i) RandomSteps(seed + i, 2000);
}

// A program sends while the daemon closes the rings and another one goes on: each request is
// executed by one of them, in order.
TEST(MessageRingsProperty, TakeOver_ExecutesEachRequestOnce) {
  constexpr uint64_t kRequests = 400;
  const uint64_t seed = TestSeed(20261130);
  uint64_t by_old_ring = 0;
  for (uint64_t round = 0; round < 200 && !::testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed + round));
    Random random(seed + round);
    const uint64_t before = random.Below(kRequests);
    Ends ends;
    ends.daemon().SetAwake(true);
    std::atomic<uint64_t> executed{0};
    std::thread program([&] {
      for (uint64_t asked = 1; asked <= kRequests; ++asked) {
        while (asked > executed.load(std::memory_order_relaxed) + 60) {
          if (::testing::Test::HasFailure()) return;
          std::this_thread::yield();
        }
        ends.SendRequest(Numbered(asked, 24));
      }
    });
    const auto execute = [&](bool socket) {
      const auto received = ends.daemon().Receive(socket);
      if (received.outcome == MessageSocket::Outcome::kNothing) return;
      const rocegw_reply header = HeaderOf(received.bytes);
      EXPECT_EQ(header.request_id, executed + 1);
      executed = header.request_id;
    };
    while (executed < before) execute(true);
    ends.daemon().CloseRings();
    for (; ends.daemon().closing(); ++by_old_ring) execute(false);
    ends.ReplaceDaemon();
    while (executed < kRequests && !::testing::Test::HasFailure()) execute(true);
    program.join();
  }
  EXPECT_GT(by_old_ring, 0u);
}

// Both sides in threads, each of which sleeps whenever nothing is left.
TEST(MessageRingsProperty, TwoThreads_NeitherSleepsForEver) {
  constexpr uint64_t kMessages = 30000;
  Ends ends;
  std::thread daemon([&] {
    Random random(1);
    for (uint64_t executed = 0; executed < kMessages;) {
      ends.daemon().SetAwake(true);
      ends.TakeWake();
      const bool readable = Readable(ends.daemon().socket().fd());
      for (int i = 0; i < 16; ++i) {
        const auto received = ends.daemon().Receive(readable);
        if (received.outcome == MessageSocket::Outcome::kNothing) break;
        ASSERT_EQ(received.outcome, MessageSocket::Outcome::kMessage);
        const rocegw_reply header = HeaderOf(received.bytes);
        ASSERT_EQ(header.request_id, ++executed);
        ends.daemon().Send(Numbered(executed, 24 + 8 * random.Below(80)), -1);
        ends.daemon().socket().Drain();
      }
      ends.WakeWaiters();
      if (random.Below(4) != 0) continue;
      ends.daemon().SetAwake(false);
      if (ends.daemon().HasRequest() || executed == kMessages) continue;
      std::array<pollfd, 2> look{
          {{ends.daemon().socket().fd(), POLLIN, 0}, {ends.wake_fd(), POLLIN, 0}}};
      ASSERT_GE(::poll(look.data(), look.size(), 30000), 1) << "the daemon sleeps for ever";
    }
  });
  Random random(2);
  uint64_t asked = 0, known = 0;
  while (known < kMessages && !::testing::Test::HasFailure()) {
    const uint64_t most = random.Between(1, 20);
    while (asked < kMessages && asked - known < most)
      ends.SendRequest(Numbered(++asked, 24 + 8 * random.Below(80)));
    ends.AwaitAnswer(asked, known,
                     [&](const rocegw_reply& header) { ASSERT_EQ(header.request_id, ++known); });
  }
  daemon.join();
}

}  // namespace
}  // namespace rocegw::testing
