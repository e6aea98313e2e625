// SPDX-License-Identifier: Apache-2.0
// A program whose requests and answers travel in rings: order, limits, its end, and what it cannot
// do to others.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <thread>

#include "gateway/session/attach/message_rings.h"
#include "tests/support/session/ring_program.h"
#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

using session::Resource;

// Program that asked for rings.
struct Program {
  explicit Program(SessionHost& host) : host_(host), client(host) {
    EXPECT_TRUE(client.Hello());
    context = client.OpenContext();
  }
  int Ask() {
    struct Plain {
      rocegw_request header;
    };
    const auto reply =
        client.Call<rocegw_rings_reply>(TestClient::Request<Plain>(ROCEGW_MSG_USE_RINGS));
    if (client.error() != 0) return client.error();
    EXPECT_GE(reply.bytes, sizeof(rocegw_message_rings));
    rings = std::make_unique<MappedRings>(client.received_fd.get());
    EXPECT_TRUE(rings->valid());
    return 0;
  }
  MappedRings& memory() { return *rings; }
  void PutAllocPd(uint64_t id) {
    auto request = TestClient::Request<rocegw_alloc_pd>(ROCEGW_MSG_ALLOC_PD);
    request.header.request_id = id;
    request.context = context;
    rings->Put({reinterpret_cast<const uint8_t*>(&request), sizeof request});
  }
  void Wake() const {
    const uint64_t one = 1;
    EXPECT_EQ(::write(client.rings_wake.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  // Returns the next answer of the ring.
  std::optional<rocegw_reply> Answer() {
    rocegw_message_rings& all = *rings->operator->();
    if (all.answers == all.answers_taken) return std::nullopt;
    rocegw_reply reply{};
    std::memcpy(&reply, all.answer[all.answers_taken++ % ROCEGW_RING_SLOTS].message, sizeof reply);
    return reply;
  }
  uint32_t Pds() const {
    uint32_t pds = 0;
    host_.server->attach().ForEach(
        [&](const session::ClientSession& one) { pds += one.Row().pds; });
    return pds;
  }

 private:
  SessionHost& host_;

 public:
  TestClient client;
  uint32_t context = 0;
  std::unique_ptr<MappedRings> rings;
};

class RingSession : public ::testing::Test {
 protected:
  tenant::Pool& pool() { return *host.server->services().pools.FindPool(session::kDefaultPool); }

  SessionHost host;
};

TEST_F(RingSession, Request_IsExecutedAndAnsweredInTheRing) {
  Program program(host);
  ASSERT_EQ(program.Ask(), 0);
  program.PutAllocPd(77);
  program.Wake();
  host.Settle();
  const auto answer = program.Answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->request_id, 77u);
  EXPECT_EQ(answer->type, ROCEGW_MSG_ALLOC_PD);
  EXPECT_EQ(answer->error, 0);
  EXPECT_FALSE(program.client.Receive());
  // From now on the control thread looks by itself.
  EXPECT_EQ(program.memory()->daemon_awake, 1u);
  program.PutAllocPd(78);
  host.Settle();
  EXPECT_EQ(program.Answer()->request_id, 78u);
}

TEST_F(RingSession, AnswerThatDoesNotFit_ComesOverTheSocketAndWakesItsThread) {
  Program program(host);
  ASSERT_EQ(program.Ask(), 0);
  // The program says that it took no answer, and has no free slot.
  program.memory()->answers_taken = UINT32_MAX - ROCEGW_RING_SLOTS + 1;
  program.memory()->waits[5] = 1;
  program.PutAllocPd(5);
  program.Wake();
  host.Settle();
  EXPECT_EQ(program.client.Receive()->header().request_id, 5u);
  EXPECT_EQ(program.memory()->answers, 0u);
  EXPECT_EQ(program.memory()->socket_answers, 1u);
  EXPECT_EQ(program.memory()->waits[5], 0u);
}

TEST_F(RingSession, Threads_AreWokenAtTheEndOfTheRound) {
  Program program(host);
  ASSERT_EQ(program.Ask(), 0);
  program.memory()->waits[5] = program.memory()->waits[6] = 1;
  program.PutAllocPd(5);
  program.PutAllocPd(6);
  program.Wake();
  uint32_t answered = 0;
  uint32_t awaited = 0;
  // Looks behind the requests of the round, before its end.
  host.loop.Post([&] {
    answered = program.memory()->answers;
    awaited = program.memory()->waits[5] + program.memory()->waits[6];
  });
  host.RunControl();
  EXPECT_EQ(answered, 2u);
  EXPECT_EQ(awaited, 2u);
  EXPECT_EQ(program.memory()->waits[5] + program.memory()->waits[6], 0u);
}

TEST_F(RingSession, RequestsInTheRing_ComeBeforeLaterOnesInTheSocket) {
  Program program(host);
  ASSERT_EQ(program.Ask(), 0);
  program.PutAllocPd(100);
  program.Wake();
  host.Settle();
  EXPECT_EQ(program.Answer()->request_id, 100u);
  for (uint64_t id = 101; id <= 140; ++id) program.PutAllocPd(id);
  auto last = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_DEALLOC_PD);
  program.client.Send(last);
  host.Settle();
  for (uint64_t id = 101; id <= 140; ++id) {
    const auto answer = program.Answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->request_id, id);
  }
  EXPECT_EQ(program.Answer()->type, ROCEGW_MSG_DEALLOC_PD);
}

TEST_F(RingSession, MessagesInTheSocket_AreCountedWhenTheyAreExecuted) {
  Program program(host);
  ASSERT_EQ(program.Ask(), 0);
  EXPECT_EQ(program.memory()->socket_requests_taken, 0u);
  auto request = TestClient::Request<rocegw_alloc_pd>(ROCEGW_MSG_ALLOC_PD);
  request.context = program.context;
  program.client.Send(request);
  host.Settle();
  EXPECT_EQ(program.memory()->socket_requests_taken, 1u);
  EXPECT_TRUE(program.Answer());
}

// A library before minor 18.
TEST_F(RingSession, ProgramThatNeverAsks_IsServedOverTheSocketAlone) {
  TestClient client(host);
  auto hello = TestClient::Request<rocegw_hello>(ROCEGW_MSG_HELLO);
  hello.magic = ROCEGW_ABI_MAGIC;
  hello.major = ROCEGW_ABI_MAJOR;
  hello.minor = 17;
  EXPECT_EQ(client.Call<rocegw_hello_reply>(hello).minor, ROCEGW_ABI_MINOR);
  const uint32_t context = client.OpenContext();
  const uint64_t memory = pool().used(Resource::kSegmentBytes);
  for (int i = 0; i < 200; ++i) {
    const uint32_t pd = client.AllocPd(context);
    ASSERT_NE(pd, 0u);
    client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
    ASSERT_EQ(client.error(), 0);
  }
  EXPECT_FALSE(client.rings_wake.valid());
  EXPECT_EQ(pool().used(Resource::kSegmentBytes), memory);
}

TEST_F(RingSession, AskedTwice_IsRefused) {
  Program program(host);
  ASSERT_EQ(program.Ask(), 0);
  struct Plain {
    rocegw_request header;
  };
  program.client.Send(TestClient::Request<Plain>(ROCEGW_MSG_USE_RINGS));
  host.Settle();
  EXPECT_EQ(program.Answer()->error, EBUSY);
}

TEST_F(RingSession, Memory_IsChargedUntilTheEnd) {
  auto program = std::make_unique<Program>(host);
  const uint64_t memory = pool().used(Resource::kSegmentBytes);
  const uint64_t descriptors = pool().used(Resource::kDescriptors);
  ASSERT_EQ(program->Ask(), 0);
  EXPECT_EQ(pool().used(Resource::kSegmentBytes), memory + session::MessageRings::MemoryBytes());
  EXPECT_GT(pool().used(Resource::kDescriptors), descriptors);
  program.reset();
  host.Settle();
  EXPECT_EQ(pool().used(Resource::kSegmentBytes), 0u);
  EXPECT_EQ(pool().used(Resource::kDescriptors), 0u);
}

TEST_F(RingSession, PoolWithoutMemory_RefusesSilently) {
  Program program(host);
  tenant::PoolSettings settings = pool().settings();
  settings.quota.peak[Resource::kSegmentBytes] = pool().used(Resource::kSegmentBytes) + 4096;
  host.server->SetPool(settings, {});
  EXPECT_EQ(program.Ask(), ENOMEM);
  EXPECT_FALSE(host.Told("segment"));
  EXPECT_NE(program.client.AllocPd(program.context), 0u);
}

TEST_F(RingSession, MoreRequestsThanFit_EndTheSession) {
  Program program(host);
  ASSERT_EQ(program.Ask(), 0);
  program.memory()->requests = 1000;
  program.Wake();
  host.Settle();
  EXPECT_TRUE(program.client.closed());
  EXPECT_TRUE(host.Logged("its ring of requests has more than fit"));
}

TEST_F(RingSession, MalformedRequest_EndsTheSession) {
  Program program(host);
  ASSERT_EQ(program.Ask(), 0);
  program.PutAllocPd(1);
  program.memory()->request[0].length = 20;
  program.Wake();
  host.Settle();
  EXPECT_TRUE(program.client.closed());
  EXPECT_TRUE(host.Logged("message of another length than it says"));
}

TEST_F(RingSession, Greeting_EndsTheSession) {
  Program program(host);
  ASSERT_EQ(program.Ask(), 0);
  auto hello = TestClient::Request<rocegw_hello>(ROCEGW_MSG_HELLO);
  program.memory().Put({reinterpret_cast<const uint8_t*>(&hello), sizeof hello});
  program.Wake();
  host.Settle();
  EXPECT_TRUE(program.client.closed());
  EXPECT_TRUE(host.Logged("second greeting"));
}

TEST_F(RingSession, RequestThatNeedsADescriptor_IsRefused) {
  Program program(host);
  ASSERT_EQ(program.Ask(), 0);
  auto request = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_SET_MEMORY);
  request.header.request_id = 4;
  program.memory().Put({reinterpret_cast<const uint8_t*>(&request), sizeof request});
  program.Wake();
  host.Settle();
  EXPECT_EQ(program.Answer()->error, EBADF);
}

TEST_F(RingSession, ProgramThatFillsItsRing_IsServedInTurnsWithOthers) {
  Program busy(host), other(host);
  ASSERT_EQ(busy.Ask(), 0);
  ASSERT_EQ(other.Ask(), 0);
  busy.Wake();
  other.Wake();
  host.Settle();
  for (uint64_t id = 1; id <= ROCEGW_RING_SLOTS; ++id) busy.PutAllocPd(id);
  other.PutAllocPd(1);
  host.RunControl();
  EXPECT_TRUE(other.Answer());
  EXPECT_LT(busy.memory()->requests_taken, ROCEGW_RING_SLOTS);
}

class PacedRingSession : public ::testing::Test {
 protected:
  static session::Options Paced() {
    session::Options options;
    options.session.requests_per_second = 100;
    options.session.request_burst = 10;
    return options;
  }
  SessionHost host{2, Paced()};
};

TEST_F(PacedRingSession, RequestsBeyondTheRate_WaitInTheRing) {
  Program program(host);
  ASSERT_EQ(program.Ask(), 0);
  for (uint64_t id = 1; id <= 40; ++id) program.PutAllocPd(id);
  program.Wake();
  for (int i = 0; i < 10; ++i) host.RunControl();
  EXPECT_LT(program.memory()->requests_taken, 20u);
  const TimePoint begin = ControlLoop::Now();
  while (program.memory()->requests_taken != 40 && ControlLoop::Now() - begin < Seconds(20))
    host.loop.RunOnce(Milliseconds(5));
  EXPECT_EQ(program.memory()->requests_taken, 40u);
  EXPECT_GT(ControlLoop::Now() - begin, Milliseconds(100));
}

// A program decides how often it wakes the control thread.
TEST_F(PacedRingSession, WakesWithoutRequests_CountLikeRequests) {
  Program program(host);
  ASSERT_EQ(program.Ask(), 0);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop) program.Wake();
  });
  const TimePoint begin = ControlLoop::Now();
  int rounds = 0;
  for (; ControlLoop::Now() - begin < Milliseconds(500); ++rounds)
    host.loop.RunOnce(Milliseconds(50));
  const double seconds = static_cast<double>((ControlLoop::Now() - begin).ns) * 1e-9;
  stop = true;
  writer.join();
  // Wake-ups, and timers of 5 ms which end the pauses.
  EXPECT_LE(rounds, 20 + seconds * (100 + 2 * 200));
  // No request is lost.
  program.PutAllocPd(5);
  program.memory()->daemon_awake = 1;
  program.Wake();
  while (program.memory()->requests_taken == 0 && ControlLoop::Now() - begin < Seconds(20))
    host.loop.RunOnce(Milliseconds(5));
  ASSERT_EQ(program.memory()->requests_taken, 1u);
  EXPECT_EQ(program.Answer()->request_id, 5u);
}

// A gateway that is replaced.
TEST_F(RingSession, NotReading_ExecutesWhatIsInTheRingAndClosesIt) {
  Program program(host);
  ASSERT_EQ(program.Ask(), 0);
  program.Wake();
  host.Settle();
  for (uint64_t id = 1; id <= 50; ++id) program.PutAllocPd(id);
  host.server->attach().SetReading(false);
  EXPECT_EQ(program.memory()->requests, 50 | ROCEGW_RING_CLOSED);
  EXPECT_NE(host.server->attach().Unsettled(), "");
  // A hostile program goes on; nobody looks.
  program.PutAllocPd(51);
  for (int i = 0; i < 10; ++i) host.RunControl();
  EXPECT_EQ(host.server->attach().Unsettled(), "");
  EXPECT_EQ(program.Pds(), 50u);
  for (uint64_t id = 1; id <= 50; ++id)
    EXPECT_EQ(program.client.Receive()->header().request_id, id);
  EXPECT_FALSE(program.client.Receive());
  // Requests in the socket are left to the successor, or to this gateway if it goes on.
  auto request = TestClient::Request<rocegw_alloc_pd>(ROCEGW_MSG_ALLOC_PD);
  request.context = program.context;
  program.client.Send(request);
  host.Settle();
  EXPECT_EQ(program.Pds(), 50u);
  host.server->attach().SetReading(true);
  host.Settle();
  EXPECT_EQ(program.Pds(), 51u);
  EXPECT_TRUE(program.client.Receive());
  EXPECT_EQ(program.Ask(), 0) << "new rings";
}

TEST_F(PacedRingSession, NotReading_DoesNotWaitForTheRate) {
  Program program(host);
  ASSERT_EQ(program.Ask(), 0);
  for (uint64_t id = 1; id <= 60; ++id) program.PutAllocPd(id);
  host.server->attach().SetReading(false);
  for (int i = 0; i < 20; ++i) host.RunControl();
  EXPECT_EQ(host.server->attach().Unsettled(), "");
  EXPECT_EQ(program.memory()->requests_taken, 60u);
}

TEST_F(RingSession, NotReading_MessageBehindTheRingIsExecutedIfItWasRead) {
  Program program(host);
  ASSERT_EQ(program.Ask(), 0);
  program.Wake();
  host.Settle();
  for (uint64_t id = 1; id <= 40; ++id) program.PutAllocPd(id);
  auto last = TestClient::Request<rocegw_alloc_pd>(ROCEGW_MSG_ALLOC_PD);
  last.context = program.context;
  program.client.Send(last);
  host.RunControl();
  host.server->attach().SetReading(false);
  for (int i = 0; i < 10; ++i) host.RunControl();
  EXPECT_EQ(host.server->attach().Unsettled(), "");
  EXPECT_GE(program.Pds(), 40u);
}

}  // namespace
}  // namespace rocegw::testing
