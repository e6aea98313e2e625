// SPDX-License-Identifier: Apache-2.0
// Unreliable connections over a network with loss, duplicates, delay and corruption, on several
// workers. The sender never notices. Messages that arrive are whole, whatever happened to packets
// around them. Without duplicates and reordering, each message arrives at most once and in order;
// without faults, all arrive. No receive is lost.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/support/marked_bytes.h"
#include "tests/support/network/gateway_pair.h"
#include "tests/support/random.h"

namespace rocegw::testing::unreliable_sim {
namespace {

constexpr size_t kPairs = 4;
constexpr uint64_t kMessages = 60;
constexpr uint32_t kMessageMax = 4096;
constexpr uint32_t kEntries = 16;
constexpr size_t kShare = size_t{kMessages} * kMessageMax;  // bytes of a side's memory per pair
constexpr uint32_t kWorkers = 2;

struct Case {
  const char* name;
  TamperProbabilities trouble;
  bool loses = false;
  bool mixes = false;  // packets are duplicated or delayed
};

class Unreliable : public ::testing::TestWithParam<std::tuple<Case, int>> {
 protected:
  struct Flow {
    RingEnd* from = nullptr;
    RingEnd* to = nullptr;
    std::vector<uint32_t> lengths;
    uint64_t posted = 0;
    uint64_t completed = 0;
    uint64_t receives_posted = 0;
    uint64_t receives_back = 0;
    std::vector<uint64_t> arrived;  // message numbers
  };

  // Odd messages are WRITEs, each to its own place; the others are SENDs.
  static uint64_t PlaceOf(size_t f, uint64_t message) { return f * kShare + message * kMessageMax; }

  void Build(GatewayPair& gateways, std::mt19937_64& rng) {
    for (uint32_t i = 0; i < kPairs; ++i) {
      RingOptions ring;
      ring.type = verbs::QpType::kUc;
      ring.handle = i + 1;
      ring.sq_entries = ring.rq_entries = kEntries;
      ring.qpn = (i << 18) + 100 + i;
      Flow& flow = flows_.emplace_back();
      flow.from = &gateways.AddQp(0, ring);
      ring.qpn = (((i + 1) * 3) << 18) + 200 + i;
      flow.to = &gateways.AddQp(1, ring);
      gateways.Connect(*flow.from, *flow.to, static_cast<uint8_t>(1 + i % 3));
      for (uint64_t m = 0; m < kMessages; ++m)
        flow.lengths.push_back(
            static_cast<uint32_t>(rng() % 3 == 0 ? rng() % 200 : rng() % kMessageMax));
      while (PostReceive(i)) {
      }
    }
  }
  // Posts receives for SENDs, one after the other in the upper half of the memory.
  bool PostReceive(size_t f) {
    Flow& flow = flows_[f];
    const uint64_t at =
        kPairs * kShare + (f * kEntries + flow.receives_posted % kEntries) * kMessageMax;
    if (!flow.to->PostReceive(at, {{GatewayPair::kBase + at, kMessageMax, GatewayPair::kKey[1]}}))
      return false;
    ++flow.receives_posted;
    return true;
  }
  void PostSend(GatewayPair& gateways, size_t f) {
    Flow& flow = flows_[f];
    const uint64_t m = flow.posted++;
    const uint64_t at = PlaceOf(f, m);
    for (size_t k = 0; k < flow.lengths[m]; ++k) gateways.memory(0)[at + k] = Mark(f, m, k);
    rocegw_send_wqe wqe{};
    wqe.opcode = m % 2 == 0 ? ROCEGW_WR_SEND_WITH_IMM : ROCEGW_WR_RDMA_WRITE_WITH_IMM;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.wr_id = m;
    wqe.imm_or_rkey = static_cast<uint32_t>(m);
    wqe.u.rdma.remote_address = GatewayPair::kBase + at;
    wqe.u.rdma.rkey = GatewayPair::kKey[1];
    ASSERT_TRUE(flow.from->PostSend(
        wqe, {{GatewayPair::kBase + at, flow.lengths[m], GatewayPair::kKey[0]}}));
    gateways.Ring(0, *flow.from);
  }
  void Take(GatewayPair& gateways, size_t f, const rocegw_cqe& cqe) {
    Flow& flow = flows_[f];
    ++flow.receives_back;
    if (cqe.status == static_cast<uint8_t>(verbs::WcStatus::kFlush)) return;
    ASSERT_EQ(cqe.status, 0) << "pair " << f;
    const uint64_t m = cqe.imm_or_rkey;
    ASSERT_LT(m, flow.posted);
    ASSERT_EQ(cqe.byte_length, flow.lengths[m]) << "pair " << f << " message " << m;
    const uint8_t* const bytes =
        gateways.memory(1).data() + (m % 2 == 0 ? cqe.wr_id : PlaceOf(f, m));
    for (size_t k = 0; k < cqe.byte_length; ++k)
      ASSERT_EQ(bytes[k], Mark(f, m, k)) << "pair " << f << " message " << m << " offset " << k;
    flow.arrived.push_back(m);
  }

  std::vector<Flow> flows_;
};

TEST_P(Unreliable, UnderTrouble_WholeMessagesOrNone) {
  const auto& [c, seed] = GetParam();
  const uint64_t used_seed = TestSeed(static_cast<uint64_t>(seed));
  std::mt19937_64 rng(used_seed);
  TamperScript script(used_seed);
  script.Set(c.trouble);
  GatewayPairOptions options;
  options.workers[0] = options.workers[1] = kWorkers;
  options.script = &script;
  options.memory_bytes = 2 * kPairs * kShare;
  GatewayPair gateways(options);
  Build(gateways, rng);

  for (int step = 0, quiet = 0; quiet < 100; ++step) {
    ASSERT_LT(step, 100000);
    ++quiet;
    for (size_t f = 0; f < kPairs; ++f) {
      Flow& flow = flows_[f];
      if (flow.posted < kMessages) quiet = 0;
      // Not more in flight than there are receives, if no message is lost.
      if (flow.posted < kMessages && flow.posted - flow.completed < 2 && rng() % 8 == 0)
        PostSend(gateways, f);
      for (const rocegw_cqe& cqe : flow.from->Poll()) {
        ASSERT_EQ(cqe.status, 0) << "pair " << f;
        ASSERT_EQ(cqe.wr_id, flow.completed++);
      }
      for (const rocegw_cqe& cqe : flow.to->Poll()) {
        Take(gateways, f, cqe);
        if (HasFatalFailure()) return;
        PostReceive(f);
      }
    }
    gateways.Step();
  }
  for (size_t f = 0; f < kPairs; ++f) {
    Flow& flow = flows_[f];
    EXPECT_EQ(flow.completed, kMessages);
    if (!c.loses && !c.mixes) {
      EXPECT_EQ(flow.arrived.size(), kMessages);
    }
    EXPECT_GT(flow.arrived.size(), kMessages / 4) << "most of a bad network's packets come";
    for (size_t i = 1; i < flow.arrived.size() && !c.mixes; ++i)
      EXPECT_LT(flow.arrived[i - 1], flow.arrived[i]) << "pair " << f;
    verbs::QpAttributes error;
    error.state = verbs::QpState::kError;
    const Qpn qpn{flow.to->options().qpn};
    const auto worker = static_cast<WorkerIndex>((qpn.value >> 18) % kWorkers);
    ASSERT_EQ(
        gateways
            .Call(1, worker, {0, worker::ModifyQp{SessionId{1}, qpn, verbs::kAttrState, error, {}}})
            .error,
        0);
    for (int i = 0; i < 20; ++i) gateways.Step();
    for (const rocegw_cqe& cqe : flow.to->Poll()) Take(gateways, f, cqe);
    EXPECT_EQ(flow.receives_back, flow.receives_posted) << "pair " << f;
  }
  if (c.loses) {
    EXPECT_GT(script.dropped() + script.corrupted(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Unreliable,
    ::testing::Combine(
        ::testing::Values(Case{"calm", {}}, Case{"loss", {.drop = 0.02}, true},
                          Case{"corruption", {.corrupt = 0.02}, true},
                          Case{"repetition", {.duplicate = 0.02}, false, true},
                          Case{"everything",
                               {.drop = 0.01, .delay = 0.01, .duplicate = 0.02, .corrupt = 0.01},
                               true,
                               true}),
        ::testing::Values(1, 2, 3)),
    [](const auto& parameters) {
      return std::string(std::get<0>(parameters.param).name) + "_seed" +
             std::to_string(std::get<1>(parameters.param));
    });

}  // namespace
}  // namespace rocegw::testing::unreliable_sim
