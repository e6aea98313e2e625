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
    library_->RestartCount();
    const int fd = rings->fd();
    daemon_->UseRings(std::move(rings));
    library_->Map(fd, sizeof(rocegw_message_rings));
    library_->Open();
  }

  void SendRequest(std::span<const uint8_t> message) {
    const auto put = library_->PutRequest(message.data(), static_cast<uint32_t>(message.size()));
    if (put == client::MessageRings::Put::kIs) return;
    std::vector<uint8_t> sent(message.begin(), message.end());
    if (put == client::MessageRings::Put::kNeedsWake) {
      rocegw_request wake{};
      wake.type = ROCEGW_MSG_WAKE_DAEMON;
      wake.length = sizeof wake;
      sent.assign(reinterpret_cast<const uint8_t*>(&wake),
                  reinterpret_cast<const uint8_t*>(&wake) + sizeof wake);
    }
    library_->CountSocketRequest();
    EXPECT_EQ(::send(program_.get(), sent.data(), sent.size(), 0),
              static_cast<ssize_t>(sent.size()));
  }
  // Receives what is there, at most one message of the socket; `wait`: for that, where none is
  // there and the ring is empty.
  template <typename F>
  void ReceiveAnswers(bool wait, F&& on_answer) {
    std::array<uint8_t, ROCEGW_MESSAGE_MAX> message{};
    uint32_t size = 0;
    const auto take_ring = [&] {
      bool any = false;
      for (; library_->TakeAnswer(message.data(), &size); any = true)
        on_answer(HeaderOf({message.data(), size}));
      return any;
    };
    library_->SetAwake(true);
    const bool had = take_ring();
    if (wait && !had) {
      library_->SetAwake(false);
      wait = !take_ring();
    } else {
      wait = false;
    }
    std::array<uint8_t, ROCEGW_MESSAGE_MAX> by_socket{};
    const ssize_t got =
        ::recv(program_.get(), by_socket.data(), by_socket.size(), wait ? 0 : MSG_DONTWAIT);
    library_->SetAwake(true);
    if (got <= 0) return;
    take_ring();
    library_->CountSocketAnswer();
    const rocegw_reply header = HeaderOf({by_socket.data(), static_cast<size_t>(got)});
    if (header.type != ROCEGW_MSG_WAKE_CLIENT) on_answer(header);
  }

  // Another daemon goes on with the socket.
  void ReplaceDaemon() {
    UniqueFd socket(::dup(daemon_->socket().fd()));
    replaced_.push_back(std::move(daemon_));
    daemon_ = MakeDaemon(std::move(socket));
  }

  ProgramMessages& daemon() { return *daemon_; }
  client::MessageRings& library() { return *library_.operator->(); }
  int program() const { return program_.get(); }

 private:
  static std::unique_ptr<ProgramMessages> MakeDaemon(UniqueFd socket) {
    return std::make_unique<ProgramMessages>(
        session::ProgramConnection(std::move(socket), session::ClientCallQueue::Make(),
                                   std::make_shared<session::ReceiverHere>()));
  }

  UniqueFd program_;
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
  bool program_sleeps = false, daemon_sleeps = true;
  const auto execute = [&](const MessageSocket::Received& received) {
    ASSERT_EQ(received.outcome, MessageSocket::Outcome::kMessage) << received.reason;
    const rocegw_reply header = HeaderOf(received.bytes);
    if (header.type == ROCEGW_MSG_WAKE_DAEMON) return;
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
        ends.ReceiveAnswers(false, learn);
        program_sleeps = random.Coin();
        if (program_sleeps) ends.library().SetAwake(false);
        break;
      case 7:
        daemon_sleeps = random.Coin();
        ends.daemon().SetAwake(!daemon_sleeps);
        break;
      case 8:
        if (random.Below(4) != 0) break;
        // Before the program gets new rings it has taken all answers of the old ones.
        ends.daemon().CloseRings();
        while (ends.daemon().closing()) execute(ends.daemon().Receive(false));
        while (asked != executed) execute_some(20, true);
        while (answered != known) {
          ends.daemon().socket().Drain();
          ends.ReceiveAnswers(false, learn);
        }
        // The program finds the ring closed.
        ends.SendRequest(Numbered(++asked, 24));
        while (asked != executed) execute_some(20, true);
        ends.NewRings();
        daemon_sleeps = true;
        break;
    }
    // A side that sleeps finds the message at its socket.
    if (daemon_sleeps && asked != executed) {
      EXPECT_TRUE(ends.daemon().HasRequest() || Readable(ends.daemon().socket().fd()));
    }
    if (program_sleeps && answered != known && !ends.daemon().socket().has_backlog()) {
      EXPECT_TRUE(Readable(ends.program()));
    }
  }
  while (asked != executed && !::testing::Test::HasFailure()) execute_some(20, true);
  while (answered != known && !::testing::Test::HasFailure()) {
    ends.daemon().socket().Drain();
    ends.ReceiveAnswers(false, learn);
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
      if (header.type == ROCEGW_MSG_WAKE_DAEMON) return;
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

// Both sides in threads, each of which sleeps at its socket whenever nothing is left.
TEST(MessageRingsProperty, TwoThreads_NeitherSleepsForEver) {
  constexpr uint64_t kMessages = 30000;
  Ends ends;
  std::atomic<uint64_t> answers{0};
  std::thread daemon([&] {
    Random random(1);
    for (uint64_t executed = 0; executed < kMessages;) {
      ends.daemon().SetAwake(true);
      const bool readable = Readable(ends.daemon().socket().fd());
      for (int i = 0; i < 16; ++i) {
        const auto received = ends.daemon().Receive(readable);
        if (received.outcome == MessageSocket::Outcome::kNothing) break;
        ASSERT_EQ(received.outcome, MessageSocket::Outcome::kMessage);
        const rocegw_reply header = HeaderOf(received.bytes);
        if (header.type == ROCEGW_MSG_WAKE_DAEMON) continue;
        ASSERT_EQ(header.request_id, ++executed);
        ends.daemon().Send(Numbered(executed, 24 + 8 * random.Below(20)), -1);
        ends.daemon().socket().Drain();
      }
      if (random.Below(4) != 0) continue;
      ends.daemon().SetAwake(false);
      if (ends.daemon().HasRequest() || executed == kMessages) continue;
      pollfd look{ends.daemon().socket().fd(), POLLIN, 0};
      ASSERT_EQ(::poll(&look, 1, 30000), 1) << "the daemon sleeps for ever";
    }
  });
  Random random(2);
  uint64_t asked = 0, known = 0;
  while (known < kMessages && !::testing::Test::HasFailure()) {
    const uint64_t most = random.Between(1, 20);
    while (asked < kMessages && asked - known < most) ends.SendRequest(Numbered(++asked, 24));
    ends.ReceiveAnswers(true,
                        [&](const rocegw_reply& header) { ASSERT_EQ(header.request_id, ++known); });
  }
  daemon.join();
}

}  // namespace
}  // namespace rocegw::testing
