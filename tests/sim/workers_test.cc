// SPDX-License-Identifier: Apache-2.0
// Two gateways with several workers and queue pairs each, over a network with loss, duplicates,
// delay and corruption: every message arrives once, whole and in order. Time is virtual, so a seed
// repeats its run exactly.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/support/marked_bytes.h"
#include "tests/support/network/gateway_pair.h"
#include "tests/support/random.h"

namespace rocegw::testing {
namespace {

struct Case {
  const char* name;
  TamperProbabilities trouble;
  size_t workers;
};

class Workers : public ::testing::TestWithParam<std::tuple<Case, int, bool>> {};

// Every byte of a message holds its queue pair's number and a count, so that misplaced bytes are
// detected.
TEST_P(Workers, SendsOfManyQueuePairs_UnderTrouble_ArriveOnceInOrder) {
  const auto& [c, seed, channels] = GetParam();
  const uint64_t used_seed = TestSeed(static_cast<uint64_t>(seed));
  std::mt19937_64 rng(used_seed);
  TamperScript script(used_seed);
  script.Set(c.trouble);
  GatewayPairOptions options;
  options.workers[0] = options.workers[1] = c.workers;
  options.script = &script;
  options.memory_bytes = 8 << 20;
  options.channels = channels;
  GatewayPair gateways(options);

  constexpr size_t kPairs = 6;
  constexpr uint64_t kMessages = 60;
  constexpr uint32_t kMessageMax = 40000;
  constexpr uint64_t kSlot = 64 << 10;
  struct Flow {
    RingEnd* from;
    RingEnd* to;
    uint64_t posted = 0;
    uint64_t completed = 0;
    uint64_t receives_posted = 0;
    uint64_t received = 0;
    std::vector<uint32_t> lengths;
  };
  std::vector<Flow> flows;
  for (uint32_t i = 0; i < kPairs; ++i) {
    RingOptions ring;
    ring.handle = i + 1;
    ring.sq_entries = ring.rq_entries = 8;
    // The buckets distribute the queue pairs differently over the workers of each side.
    ring.qpn = (i << 18) + 100 + i;
    RingEnd& a = gateways.AddQp(0, ring);
    ring.qpn = ((i / 2 + 1) << 18) + 200 + i;
    RingEnd& b = gateways.AddQp(1, ring);
    gateways.Connect(a, b, static_cast<uint8_t>(3 + i % 3));
    flows.push_back({&a, &b, 0, 0, 0, 0, {}});
  }
  for (uint64_t i = 0; i < kPairs * kMessages; ++i) {
    flows[i % kPairs].lengths.push_back(static_cast<uint32_t>(rng() % kMessageMax));
  }

  bool done = false;
  for (int step = 0; step < 400000 && !done; ++step) {
    done = true;
    for (size_t f = 0; f < kPairs; ++f) {
      Flow& flow = flows[f];
      const auto slot_of = [&](uint64_t message) { return (f * 8 + message % 8) * kSlot; };
      if (flow.receives_posted < kMessages && flow.receives_posted - flow.received < 8 &&
          rng() % 3 == 0) {
        const rocegw_sge sge{GatewayPair::kBase + slot_of(flow.receives_posted), kMessageMax,
                             GatewayPair::kKey[1]};
        ASSERT_TRUE(flow.to->PostReceive(flow.receives_posted, {sge}));
        ++flow.receives_posted;
      }
      if (flow.posted < kMessages && flow.posted - flow.completed < 8 && rng() % 3 == 0) {
        const uint32_t length = flow.lengths[flow.posted];
        uint8_t* bytes = gateways.memory(0).data() + slot_of(flow.posted);
        for (size_t k = 0; k < length; ++k) bytes[k] = Mark(f, flow.posted, k);
        rocegw_send_wqe wqe{};
        wqe.opcode = ROCEGW_WR_SEND;
        wqe.flags = ROCEGW_WQE_SIGNALED;
        wqe.wr_id = flow.posted;
        const rocegw_sge sge{GatewayPair::kBase + slot_of(flow.posted), length,
                             GatewayPair::kKey[0]};
        ASSERT_TRUE(flow.from->PostSend(wqe, {sge}));
        gateways.Ring(0, *flow.from);
        ++flow.posted;
      }
      for (const rocegw_cqe& cqe : flow.from->Poll()) {
        ASSERT_EQ(cqe.status, 0) << "pair " << f;
        ASSERT_EQ(cqe.wr_id, flow.completed++);
      }
      for (const rocegw_cqe& cqe : flow.to->Poll()) {
        ASSERT_EQ(cqe.status, 0) << "pair " << f;
        ASSERT_EQ(cqe.wr_id, flow.received);
        ASSERT_EQ(cqe.byte_length, flow.lengths[flow.received]);
        const uint8_t* bytes = gateways.memory(1).data() + slot_of(flow.received);
        for (size_t k = 0; k < cqe.byte_length; ++k) {
          ASSERT_EQ(bytes[k], Mark(f, flow.received, k)) << "pair " << f << " offset " << k;
        }
        ++flow.received;
      }
      done &= flow.completed == kMessages && flow.received == kMessages;
    }
    gateways.Step();
  }
  EXPECT_TRUE(done);
  if (c.trouble.drop > 0) {
    EXPECT_GT(script.dropped(), 0u);
    EXPECT_GT(gateways.Count(0, &metrics::WorkerCounters::retransmit_packets), 0u);
  } else if (c.trouble.delay == 0 && c.trouble.corrupt == 0) {
    EXPECT_EQ(gateways.Count(0, &metrics::WorkerCounters::nak_sequence_rx_packets), 0u);
  }
  if (channels) {
    EXPECT_GT(gateways.Count(1, &metrics::WorkerCounters::channel_rx_packets), kPairs * kMessages);
    EXPECT_EQ(gateways.Count(1, &metrics::WorkerCounters::ack_tx_packets) > 0, true);
  }
  // No worker reported an event.
  EXPECT_TRUE(gateways.notices.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, Workers,
    ::testing::Combine(
        ::testing::Values(Case{"calm", {}, 1}, Case{"calm", {}, 3}, Case{"loss", {.drop = 0.01}, 2},
                          Case{"heavy_loss", {.drop = 0.05}, 1},
                          Case{"everything",
                               {.drop = 0.01, .delay = 0.01, .duplicate = 0.02, .corrupt = 0.01},
                               2}),
        ::testing::Values(1, 2), ::testing::Bool()),
    [](const auto& parameters) {
      const Case& c = std::get<0>(parameters.param);
      return std::string(c.name) + "_workers" + std::to_string(c.workers) + "_seed" +
             std::to_string(std::get<1>(parameters.param)) +
             (std::get<2>(parameters.param) ? "_channels" : "_native");
    });

}  // namespace
}  // namespace rocegw::testing
