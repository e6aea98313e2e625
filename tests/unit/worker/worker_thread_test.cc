// SPDX-License-Identifier: Apache-2.0
// Workers with their threads: the same objects as in the daemon, two threads per side. Also run
// under ThreadSanitizer.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <stop_token>
#include <thread>
#include <vector>

#include "gateway/base/timing/monotonic_clock.h"
#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {
namespace {

struct Waiting {
  const char* name;
  WaitMode mode;
  bool guests;
};

class WorkerThreads : public ::testing::TestWithParam<Waiting> {};
INSTANTIATE_TEST_SUITE_P(Modes, WorkerThreads,
                         ::testing::Values(Waiting{"Alone", WaitMode::kAdaptive, false},
                                           Waiting{"Guests", WaitMode::kAdaptive, true},
                                           Waiting{"Event", WaitMode::kEvent, false},
                                           Waiting{"EventBatch", WaitMode::kEventBatch, false},
                                           Waiting{"Hybrid", WaitMode::kHybrid, false}),
                         [](const auto& test) { return test.param.name; });

// With guests, a waiting thread runs the workers' rounds for every other message, and another
// thread does so all the time; otherwise the workers' own threads must notice that they are needed
// again.
TEST_P(WorkerThreads, PingPong_TwoWorkersASide_EveryMessageComesBack) {
  GatewayPairOptions options;
  options.workers[0] = options.workers[1] = 2;
  options.threads = true;
  options.waiting.guests = GetParam().guests;
  options.waiting.policy.mode = GetParam().mode;
  GatewayPair gateways(options);
  struct Pair {
    RingEnd* ends[2];
  };
  std::vector<Pair> pairs;
  for (uint32_t i = 0; i < 2; ++i) {
    RingOptions ring;
    ring.handle = i + 1;
    ring.rq_payload_stride = 256;
    ring.payload_stride = 256;
    ring.signal_all = true;
    ring.qpn = (i << 18) + 50 + i;
    RingEnd& a = gateways.AddQp(0, ring);
    RingEnd& b = gateways.AddQp(1, ring);
    gateways.Connect(a, b);
    pairs.push_back({{&a, &b}});
  }
  const auto send = [&](int side, RingEnd& end, uint64_t value) {
    std::vector<uint8_t> bytes(8);
    std::memcpy(bytes.data(), &value, 8);
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_SEND;
    wqe.flags = ROCEGW_WQE_INLINE;
    wqe.wr_id = value;
    ASSERT_TRUE(end.PostSend(wqe, {{0, 8, 0}}, &bytes));
    gateways.Ring(side, end);
  };
  std::atomic<bool> guests_come{GetParam().guests};
  const auto come = [&] {
    for (int side = 0; side < 2; ++side)
      for (size_t w = 0; w < 2; ++w) gateways.thread(side, w).RunGuestRound();
  };
  std::jthread other([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (guests_come.load()) come();
      std::this_thread::yield();
    }
  });
  const auto wait = [&](RingEnd& end, uint32_t& sends, uint64_t& value) {
    for (;;) {
      for (const rocegw_cqe& cqe : end.Poll()) {
        EXPECT_EQ(cqe.status, 0);
        if ((cqe.flags & ROCEGW_CQE_RECEIVE) == 0) {
          ++sends;
          continue;
        }
        EXPECT_NE(cqe.flags & ROCEGW_CQE_PAYLOAD_IN_RING, 0);
        std::memcpy(&value, end.rq_payload(cqe.ring_slot), 8);
        return;
      }
      if (guests_come.load()) come();
      std::this_thread::yield();
    }
  };
  uint32_t sends[2][2] = {};
  for (uint64_t round = 1; round <= 300; ++round) {
    guests_come.store(GetParam().guests && round % 2 == 0);
    for (size_t p = 0; p < pairs.size(); ++p) {
      for (int side = 0; side < 2; ++side) {
        RingEnd& end = *pairs[p].ends[side];
        while (!end.PostReceive(round, {{GatewayPair::kBase, 64, GatewayPair::kKey[side]}})) {
          end.Poll();
        }
      }
      send(0, *pairs[p].ends[0], round);
      uint64_t got = 0;
      wait(*pairs[p].ends[1], sends[p][1], got);
      ASSERT_EQ(got, round);
      send(1, *pairs[p].ends[1], round * 2);
      wait(*pairs[p].ends[0], sends[p][0], got);
      ASSERT_EQ(got, round * 2);
    }
  }
  other.request_stop();
  other.join();
  for (size_t p = 0; p < pairs.size(); ++p) {
    gateways.Remove(0, *pairs[p].ends[0]);
    gateways.Remove(1, *pairs[p].ends[1]);
  }
}

// A program may clear O_NONBLOCK of the eventfd that it shares with a worker and read the eventfd
// itself. A worker that also reads it would block for ever.
TEST(WorkerWake, ProgramsEventfd_IsNeverRead_AndEachWriteWakes) {
  GatewayPairOptions options;
  options.threads = true;
  options.waiting.policy.mode = WaitMode::kEventBatch;  // sleeps whenever it has nothing to do
  GatewayPair gateways(options);
  RingOptions ring;
  ring.handle = 1;
  ring.rq_payload_stride = 256;
  ring.payload_stride = 256;
  ring.signal_all = true;
  ring.qpn = 50;
  RingEnd& a = gateways.AddQp(0, ring);
  RingEnd& b = gateways.AddQp(1, ring);
  gateways.Connect(a, b);
  const auto sleeps = [&] {
    return std::atomic_ref(const_cast<rocegw_worker_line*>(gateways.line(0, 0))->need_wakeup)
               .load() != 0;
  };
  for (uint64_t message = 1; message <= 5; ++message) {
    ASSERT_TRUE(b.PostReceive(message, {{GatewayPair::kBase, 64, GatewayPair::kKey[1]}}));
    while (!sleeps()) std::this_thread::yield();
    std::vector<uint8_t> bytes(8);
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_SEND;
    wqe.flags = ROCEGW_WQE_INLINE;
    wqe.wr_id = message;
    ASSERT_TRUE(a.PostSend(wqe, {{0, 8, 0}}, &bytes));
    gateways.Ring(0, a);
    for (bool sent = false; !sent;) {
      for (const rocegw_cqe& cqe : a.Poll()) {
        EXPECT_EQ(cqe.status, 0);
        EXPECT_EQ(cqe.wr_id, message);
        sent = true;
      }
      std::this_thread::yield();
    }
    while (b.Poll().empty()) std::this_thread::yield();
  }
  uint64_t writes = 0;
  ASSERT_EQ(::read(gateways.wake_fd(0, 0), &writes, sizeof writes),
            static_cast<ssize_t>(sizeof writes))
      << "the worker has read it";
  EXPECT_GE(writes, 1u);
  gateways.Remove(0, a);
  gateways.Remove(1, b);
}

// A parked thread leaves the worker to another thread; doorbells and messages of that time are
// found afterwards.
TEST(WorkerPark, AParkedThread_LeavesTheWorkerAlone_AndFindsWhatCameMeanwhile) {
  GatewayPairOptions options;
  options.threads = true;
  GatewayPair gateways(options);
  RingOptions ring;
  ring.handle = 1;
  ring.rq_payload_stride = 256;
  ring.payload_stride = 256;
  ring.signal_all = true;
  ring.qpn = 50;
  RingEnd& a = gateways.AddQp(0, ring);
  RingEnd& b = gateways.AddQp(1, ring);
  gateways.Connect(a, b);
  worker::WorkerThread& thread = gateways.thread(0, 0);
  for (uint64_t message = 1; message <= 50; ++message) {
    ASSERT_TRUE(b.PostReceive(message, {{GatewayPair::kBase, 64, GatewayPair::kKey[1]}}));
    thread.Park();
    while (!thread.is_parked()) std::this_thread::yield();
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_SEND;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.wr_id = message;
    ASSERT_TRUE(a.PostSend(wqe, {}));
    gateways.Ring(0, a);
    while (!thread.worker().Rest(MonotonicNow())) {
    }
    EXPECT_NE(std::atomic_ref(gateways.page(0, 0)->summary).load(), 0u);
    EXPECT_TRUE(a.Poll().empty());
    // A second request, as when one take-over follows another.
    thread.Unpark();
    if (message % 2 == 0) {
      thread.Park();
      while (!thread.is_parked()) std::this_thread::yield();
      thread.worker().Rest(MonotonicNow());
      thread.Unpark();
    }
    while (a.Poll().empty()) std::this_thread::yield();
    while (b.Poll().empty()) std::this_thread::yield();
  }
  gateways.Remove(0, a);
  gateways.Remove(1, b);
}

}  // namespace
}  // namespace rocegw::testing
