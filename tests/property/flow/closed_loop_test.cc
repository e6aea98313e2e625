// SPDX-License-Identifier: Apache-2.0
// Every algorithm in a closed loop over one bottleneck: flows share it fairly, use it, keep its
// queue within limits, and yield to a joining flow. A model of the network; tests/sim has the same
// with queue pairs.
#include <gtest/gtest.h>

#include "tests/property/flow/bottleneck_model.h"
#include "tests/support/random.h"

namespace rocegw::testing {
namespace {

using flow::CcConfig;
using flow::CcKind;
using flow::CcProfile;

constexpr Duration kRtt = Microseconds(20);
constexpr double kGbps = 25;
constexpr uint64_t kBdp = 62500;

struct Law {
  CcKind kind;
  size_t flows;
};

class ClosedLoop : public ::testing::TestWithParam<Law> {
 protected:
  BottleneckOptions Network() {
    BottleneckOptions options{.gbps = kGbps, .base_rtt = kRtt};
    options.seed = TestSeed(GetParam().flows);
    switch (GetParam().kind) {
      case CcKind::kCaqm:
        options.hint_low = kBdp / 10;
        options.hint_high = kBdp;
        break;
      case CcKind::kDctcp:
        options.mark_from = kBdp / 2;
        options.mark_to = kBdp / 2 + 1;
        break;
      case CcKind::kDcqcn:
        options.mark_from = 20'000;
        options.mark_to = 200'000;
        options.mark_most = 0.05;
        break;
      default:
        break;
    }
    return options;
  }
  CcConfig Config() const {
    return {.kind = GetParam().kind, .window_bytes = 256 << 10, .profile = &profile_};
  }
  // Time for rates to settle, and to be distinguished from noise.
  Duration Settle() const {
    return GetParam().kind == CcKind::kDcqcn ? Milliseconds(200) : Milliseconds(15);
  }
  Duration Watch() const {
    return GetParam().kind == CcKind::kDcqcn ? Milliseconds(400) : Milliseconds(30);
  }

  ClosedLoop() { profile_.link_bits_per_second = static_cast<uint64_t>(kGbps * 1e9); }
  CcProfile profile_;
};

TEST_P(ClosedLoop, Flows_ShareFairlyAndUseTheLink) {
  Bottleneck network(Network());
  const size_t flows = GetParam().flows;
  for (size_t i = 0; i < flows; ++i)
    network.AddSender(Config(), network.now() + Microseconds(static_cast<int64_t>(i)));
  network.RunUntil(network.now() + Settle());
  network.StartCounting();
  network.RunUntil(network.now() + Watch());
  EXPECT_GE(network.Jain(0, flows), 0.98);
  EXPECT_GE(network.Utilisation(), GetParam().kind == CcKind::kDcqcn ? 0.85 : 0.95);
  EXPECT_EQ(network.drops(), 0u);
  // The standing queue is at most a packet per flow plus the algorithm's target.
  if (GetParam().kind == CcKind::kCaqm || GetParam().kind == CcKind::kDctcp) {
    EXPECT_LE(network.most_queued(), 2 * kBdp + flows * 4096);
  }
  if (GetParam().kind == CcKind::kSwift) {
    // The target minus the path is 80 us, and small windows get up to 100 us more: 562500 bytes.
    EXPECT_LE(network.most_queued(), 600'000u);
  }
}

// With more flows, each sends less than a packet per round trip, too little to measure in a few
// round trips.
class ClosedLoopOfFew : public ClosedLoop {};

TEST_P(ClosedLoopOfFew, JoiningFlow_GetsItsShare) {
  Bottleneck network(Network());
  const size_t flows = GetParam().flows;
  for (size_t i = 0; i < flows; ++i) network.AddSender(Config(), network.now());
  network.RunUntil(network.now() + Settle());
  const size_t late = network.AddSender(Config(), network.now());
  // Fifty round trips, which include Swift's queue; DCQCN has 100 ms.
  const Duration rtt = GetParam().kind == CcKind::kSwift ? Microseconds(120) : kRtt * 2;
  const bool dcqcn = GetParam().kind == CcKind::kDcqcn;
  network.RunUntil(network.now() + (dcqcn ? Milliseconds(100) : rtt * 50));
  network.StartCounting();
  network.RunUntil(network.now() + (dcqcn ? Milliseconds(50) : rtt * 50));
  uint64_t all = 0;
  for (size_t i = 0; i <= late; ++i) all += network.delivered(i);
  const double share = static_cast<double>(network.delivered(late)) *
                       static_cast<double>(flows + 1) / static_cast<double>(all);
  EXPECT_GE(share, dcqcn ? 0.5 : 0.75);
  EXPECT_LE(share, dcqcn ? 2.0 : 1.33);
}

class ClosedLoopOfMany : public ClosedLoop {};

TEST_P(ClosedLoopOfMany, SmallBuffer_GoesOn) {
  BottleneckOptions options = Network();
  options.buffer = 2 << 20;
  Bottleneck network(options);
  const size_t flows = GetParam().flows;
  for (size_t i = 0; i < flows; ++i) network.AddSender(Config(), network.now());
  network.RunUntil(network.now() + Settle());
  network.StartCounting();
  network.RunUntil(network.now() + Watch());
  EXPECT_GE(network.Utilisation(), GetParam().kind == CcKind::kDcqcn ? 0.85 : 0.95);
}

TEST_P(ClosedLoopOfFew, OthersLeave_TheRestTakesTheLink) {
  const size_t flows = GetParam().flows;
  // Under DCQCN's presets, a single flow first recovers by 5 Mbit/s per 300 us.
  const Duration recovery =
      GetParam().kind == CcKind::kDcqcn ? Milliseconds(300) : Milliseconds(10);
  Bottleneck network(Network());
  const TimePoint leave = network.now() + Settle();
  network.AddSender(Config(), network.now());
  for (size_t i = 1; i < flows; ++i) network.AddSender(Config(), network.now(), leave);
  network.RunUntil(leave + recovery);
  network.StartCounting();
  network.RunUntil(network.now() + Watch());
  EXPECT_GE(network.Utilisation(), 0.9);
}

std::vector<Law> Laws(const std::vector<size_t>& sizes) {
  std::vector<Law> laws;
  for (CcKind kind : {CcKind::kDcqcn, CcKind::kDctcp, CcKind::kCaqm, CcKind::kSwift})
    for (size_t flows : sizes) laws.push_back({kind, flows});
  return laws;
}

std::string NameOf(const ::testing::TestParamInfo<Law>& test) {
  return std::string(flow::AlgorithmOf(test.param.kind).name) + "_" +
         std::to_string(test.param.flows);
}

INSTANTIATE_TEST_SUITE_P(Laws, ClosedLoop, ::testing::ValuesIn(Laws({2, 4, 8, 16, 32, 64})),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Laws, ClosedLoopOfFew, ::testing::ValuesIn(Laws({2, 8})), NameOf);
INSTANTIATE_TEST_SUITE_P(Laws, ClosedLoopOfMany, ::testing::ValuesIn(Laws({64, 100})), NameOf);

// Control experiment with static windows, so that the tests above can fail.
TEST(ClosedLoopWithoutControl, Queue_IsAllTheWindows) {
  BottleneckOptions options{.gbps = kGbps, .base_rtt = kRtt};
  Bottleneck network(options);
  for (int i = 0; i < 8; ++i)
    network.AddSender({.kind = CcKind::kStatic, .window_bytes = 256 << 10}, network.now());
  network.RunUntil(network.now() + Milliseconds(10));
  EXPECT_GT(network.most_queued(), 1'900'000u);
}

// At run time, with packets in flight: from one algorithm to another and back.
TEST(ClosedLoopSwitch, MidStream_NoBurstAndNoHole) {
  CcProfile profile;
  profile.link_bits_per_second = static_cast<uint64_t>(kGbps * 1e9);
  BottleneckOptions options{.gbps = kGbps, .base_rtt = kRtt};
  options.hint_low = kBdp / 10;
  options.hint_high = kBdp;
  options.mark_from = 100'000;
  options.mark_to = 400'000;
  Bottleneck network(options);
  CcConfig config{.kind = CcKind::kCaqm, .window_bytes = 256 << 10, .profile = &profile};
  for (int i = 0; i < 8; ++i) network.AddSender(config, network.now());
  network.RunUntil(network.now() + Milliseconds(10));
  for (CcKind kind : {CcKind::kSwift, CcKind::kDcqcn, CcKind::kDctcp, CcKind::kCaqm}) {
    config.kind = kind;
    network.StartCounting();
    for (size_t i = 0; i < 8; ++i) network.Switch(i, config);
    network.RunUntil(network.now() + Milliseconds(1));
    EXPECT_GE(network.Utilisation(), 0.8) << flow::AlgorithmOf(kind).name;
    EXPECT_LE(network.most_queued(), 8 * kBdp) << flow::AlgorithmOf(kind).name;
    network.RunUntil(network.now() + Milliseconds(10));
  }
}

}  // namespace
}  // namespace rocegw::testing
