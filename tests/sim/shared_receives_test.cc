// SPDX-License-Identifier: Apache-2.0
// Many queue pairs that share one receive queue, over a network with loss, duplicates, delay and
// corruption, as plain RoCEv2 and by channels. Every message arrives once, whole and in the order
// of its queue pair, in a receive that no other message has. A failed queue pair leaves the others
// enough receives.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

#include "tests/support/marked_bytes.h"
#include "tests/support/network/gateway_pair.h"
#include "tests/support/random.h"

namespace rocegw::testing::shared_sim {
namespace {

constexpr size_t kPairs = 5;
constexpr size_t kFails = 4;  // the queue pair that is moved to the error state
constexpr uint64_t kMessages = 80;
constexpr uint32_t kMessageMax = 20000;
constexpr uint32_t kEntries = 8;
constexpr uint64_t kSlot = 32 << 10;
constexpr uint32_t kWorkers = 2;

struct Case {
  const char* name;
  TamperProbabilities trouble;
};

class SharedQueue : public ::testing::TestWithParam<std::tuple<Case, int, bool>> {
 protected:
  struct Flow {
    RingEnd* from = nullptr;
    RingEnd* to = nullptr;
    uint64_t posted = 0;
    uint64_t completed = 0;
    uint64_t received = 0;
    uint64_t flushed = 0;
    std::vector<uint32_t> lengths;
  };

  void Build(GatewayPair& gateways, std::mt19937_64& rng) {
    ASSERT_EQ(gateways.Call(1, 0, {0, worker::LinkSrq{shared_.Srq()}}).error, 0);
    for (uint32_t i = 0; i < kPairs; ++i) {
      RingOptions ring;
      ring.handle = i + 1;
      ring.sq_entries = ring.rq_entries = 8;
      ring.qpn = (i << 18) + 100 + i;
      Flow& flow = flows_.emplace_back();
      flow.from = &gateways.AddQp(0, ring);
      // Buckets of the worker that owns the shared receive queue.
      ring.qpn = ((i * kWorkers) << 18) + 200 + i;
      ring.shared = &shared_;
      flow.to = &gateways.AddQp(1, ring);
      gateways.Connect(*flow.from, *flow.to, static_cast<uint8_t>(3 + i % 3));
      for (uint64_t m = 0; m < kMessages; ++m)
        flow.lengths.push_back(
            static_cast<uint32_t>(rng() % 3 == 0 ? rng() % 200 : rng() % kMessageMax));
    }
  }
  void PostReceive() {
    if (free_buffers_.empty()) return;
    const uint64_t buffer = *free_buffers_.begin();
    const rocegw_sge sge{GatewayPair::kBase + buffer * kSlot, kMessageMax, GatewayPair::kKey[1]};
    if (shared_.PostReceive(buffer, {sge})) free_buffers_.erase(buffer);
  }
  void PostSend(GatewayPair& gateways, size_t f) {
    Flow& flow = flows_[f];
    const uint32_t length = flow.lengths[flow.posted];
    const uint64_t at = (f * 8 + flow.posted % 8) * kSlot;
    for (size_t k = 0; k < length; ++k) gateways.memory(0)[at + k] = Mark(f, flow.posted, k);
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_SEND;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.wr_id = flow.posted;
    ASSERT_TRUE(
        flow.from->PostSend(wqe, {{GatewayPair::kBase + at, length, GatewayPair::kKey[0]}}));
    gateways.Ring(0, *flow.from);
    ++flow.posted;
  }
  void Take(GatewayPair& gateways, size_t f, const rocegw_cqe& cqe) {
    Flow& flow = flows_[f];
    ASSERT_TRUE(free_buffers_.insert(cqe.wr_id).second) << "a receive completed twice";
    shared_.Free(cqe.ring_slot);
    if (f == kFails && cqe.status == static_cast<uint8_t>(verbs::WcStatus::kFlush)) {
      ++flow.flushed;
      return;
    }
    ASSERT_EQ(cqe.status, 0) << "pair " << f;
    ASSERT_EQ(flow.flushed, 0u);
    ASSERT_EQ(cqe.byte_length, flow.lengths[flow.received]) << "pair " << f;
    const uint8_t* bytes = (cqe.flags & ROCEGW_CQE_PAYLOAD_IN_RING) != 0
                               ? shared_.payload(cqe.ring_slot)
                               : gateways.memory(1).data() + cqe.wr_id * kSlot;
    for (size_t k = 0; k < cqe.byte_length; ++k)
      ASSERT_EQ(bytes[k], Mark(f, flow.received, k)) << "pair " << f << " offset " << k;
    ++flow.received;
  }
  void Fail(GatewayPair& gateways) {
    verbs::QpAttributes error;
    error.state = verbs::QpState::kError;
    const worker::ModifyQp body{
        SessionId{1}, Qpn{flows_[kFails].to->options().qpn}, verbs::kAttrState, error, {}};
    ASSERT_EQ(gateways.Call(1, 0, {0, body}).error, 0);
    failed_ = true;
  }
  size_t LastReceiveNotices(GatewayPair& gateways) {
    gateways.TakeNotices();
    size_t count = 0;
    for (const worker::WorkerMessage& notice : gateways.notices) {
      const auto* raised = std::get_if<worker::AsyncEventRaised>(&notice.body);
      count += raised != nullptr && raised->event == verbs::AsyncEvent::kLastWqeReached;
    }
    return count;
  }

  SharedEnd shared_{{.entries = kEntries, .payload_stride = 256}};
  std::vector<Flow> flows_;
  std::set<uint64_t> free_buffers_;
  bool failed_ = false;
};

TEST_P(SharedQueue, UnderTrouble_EveryMessageOnce_InAReceiveOfItsOwn) {
  const auto& [c, seed, channels] = GetParam();
  const uint64_t used_seed = TestSeed(static_cast<uint64_t>(seed));
  std::mt19937_64 rng(used_seed);
  TamperScript script(used_seed);
  script.Set(c.trouble);
  GatewayPairOptions options;
  options.workers[0] = options.workers[1] = kWorkers;
  options.script = &script;
  options.memory_bytes = 2 << 20;
  options.channels = channels;
  GatewayPair gateways(options);
  Build(gateways, rng);
  for (uint64_t buffer = 0; buffer < 2 * kEntries; ++buffer) free_buffers_.insert(buffer);

  bool done = false;
  for (int step = 0; step < 400000 && !done; ++step) {
    done = true;
    if (rng() % 2 == 0) PostReceive();
    for (size_t f = 0; f < kPairs; ++f) {
      Flow& flow = flows_[f];
      const bool goes_on = f != kFails || !failed_;
      if (goes_on && flow.posted < kMessages && flow.posted - flow.completed < 8 && rng() % 3 == 0)
        PostSend(gateways, f);
      for (const rocegw_cqe& cqe : flow.from->Poll()) {
        if (f == kFails && failed_) continue;
        ASSERT_EQ(cqe.status, 0) << "pair " << f;
        ASSERT_EQ(cqe.wr_id, flow.completed++);
      }
      for (const rocegw_cqe& cqe : flow.to->Poll()) {
        Take(gateways, f, cqe);
        if (HasFatalFailure()) return;
      }
      if (f != kFails) done &= flow.completed == kMessages && flow.received == kMessages;
    }
    if (!failed_ && flows_[kFails].received >= kMessages / 2) Fail(gateways);
    done &= failed_;
    gateways.Step();
  }
  EXPECT_TRUE(done);
  for (int i = 0; i < 200; ++i) gateways.Step();
  for (const rocegw_cqe& cqe : flows_[kFails].to->Poll()) Take(gateways, kFails, cqe);
  EXPECT_EQ(LastReceiveNotices(gateways), 1u);
  EXPECT_LE(flows_[kFails].received, kMessages);

  // No receive is lost: all that are not free are posted, and each can be taken.
  gateways.Remove(1, *flows_[kFails].to);
  const size_t left = kEntries - shared_.free_slots();
  Flow& flow = flows_[0];
  size_t taken = 0;
  for (size_t i = 0; i < left; ++i) {
    flow.lengths.push_back(static_cast<uint32_t>(i));
    PostSend(gateways, 0);
    for (int step = 0; step < 20000 && taken == i; ++step) {
      gateways.Step();
      flow.completed += flow.from->Poll().size();
      for (const rocegw_cqe& cqe : flow.to->Poll()) {
        Take(gateways, 0, cqe);
        ++taken;
      }
    }
  }
  EXPECT_EQ(taken, left);
  EXPECT_EQ(shared_.free_slots(), kEntries);
  EXPECT_GT(gateways.Count(1, &metrics::WorkerCounters::rnr_tx_packets), 0u) << "it was empty once";
}

INSTANTIATE_TEST_SUITE_P(
    All, SharedQueue,
    ::testing::Combine(
        ::testing::Values(Case{"calm", {}}, Case{"loss", {.drop = 0.02}},
                          Case{"everything",
                               {.drop = 0.01, .delay = 0.01, .duplicate = 0.02, .corrupt = 0.01}}),
        ::testing::Values(1, 2, 3), ::testing::Bool()),
    [](const auto& parameters) {
      return std::string(std::get<0>(parameters.param).name) + "_seed" +
             std::to_string(std::get<1>(parameters.param)) +
             (std::get<2>(parameters.param) ? "_channels" : "_native");
    });

}  // namespace
}  // namespace rocegw::testing::shared_sim
