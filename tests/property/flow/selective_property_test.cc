// SPDX-License-Identifier: Apache-2.0
// Selective repeat, compared with sets: whatever the path does, every packet is taken once and
// acknowledged once, and only dropped packets are sent again.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

#include "tests/support/qp/selective_path.h"

namespace rocegw::flow {
namespace {

using testing::PathRules;
using testing::Random;
using testing::SelectivePath;
using testing::TestSeed;

constexpr TimePoint kLongEnough{60'000'000'000};

double Below(Random& random, double most) {
  return most * static_cast<double>(random.Below(1001)) / 1000;
}

struct Scenario {
  SelectiveConfig config;
  uint32_t window = kMaxFlowPackets;
  Psn first;
  PathRules rules;
  uint64_t packets = 0;
};

Scenario SomeScenario(Random& random) {
  Scenario run;
  run.config.cc.window_bytes = static_cast<uint32_t>(random.Between(1, 300)) * 1024;
  run.config.max_packets =
      static_cast<uint32_t>(random.Coin() ? kMaxFlowPackets : random.Between(1, 200));
  run.window = static_cast<uint32_t>(random.Coin() ? kMaxFlowPackets : random.Between(1, 200));
  run.config.room_packets = run.window;
  if (random.Coin()) run.config.rtt = Microseconds(50);
  // A third of the runs starts near the wrap of the PSN space.
  run.first = Psn(random.Below(3) == 0 ? kPsnMask - static_cast<uint32_t>(random.Below(3000))
                                       : random.Value<uint32_t>());
  run.rules.delay = Microseconds(static_cast<int64_t>(random.Between(5, 200)));
  run.rules.loss = random.Coin() ? Below(random, 0.02) : Below(random, 0.3);
  run.rules.ack_loss = random.Coin() ? 0 : Below(random, 0.3);
  run.rules.twice = random.Coin() ? 0 : Below(random, 0.1);
  run.packets = random.Between(1, 4000);
  return run;
}

void ExpectAllDone(const SelectivePath& path, const Scenario& run) {
  EXPECT_EQ(path.faults, 0u);
  EXPECT_EQ(path.delivered.size(), run.packets);
  EXPECT_EQ(path.acked.size(), run.packets);
  EXPECT_TRUE(path.sender.idle());
  EXPECT_EQ(path.sender.in_flight(), 0u);
  EXPECT_EQ(path.sender.packets_lost(), 0u);
  EXPECT_EQ(path.sender.next(), run.first + static_cast<uint32_t>(run.packets));
  EXPECT_EQ(path.receiver.next(), path.sender.next());
  EXPECT_EQ(path.receiver.holes(), 0u);
  EXPECT_EQ(path.sender_pool.bytes_used(), 0u);
  EXPECT_EQ(path.receiver_pool.bytes_used(), 0u);
  EXPECT_LE(path.most_in_window, run.config.max_packets);
  EXPECT_LE(path.most_in_window, run.window);
  // A directory, and a chunk for each 64 packets or part of it.
  EXPECT_LE(path.most_ledger_bytes,
            sizeof(LedgerPage) + (path.most_in_window / 64 + 2) * sizeof(RecordChunk));
}

TEST(SelectiveRepeat, PathThatKeepsOrder_WhatIsSentAgainIsWhatWasDropped) {
  const uint64_t seed = TestSeed(401);
  uint64_t dropped = 0;
  uint64_t ahead = 0;
  for (uint64_t round = 0; round < 300; ++round) {
    Random random(seed + round);
    const Scenario run = SomeScenario(random);
    SelectivePath path(run.config, run.window, run.first, run.rules, seed * 1000 + round);
    ASSERT_TRUE(path.Run(run.packets, kLongEnough)) << "seed " << seed + round;
    ExpectAllDone(path, run);
    EXPECT_EQ(path.resent, path.dropped);
    if (run.rules.twice == 0) {
      EXPECT_EQ(path.sender.spurious(), 0u);
    }
    EXPECT_EQ(path.sender.lost(), path.dropped_count);
    dropped += path.dropped_count;
    ahead += path.placed_before_hole;
    if (HasFailure()) FAIL() << "seed " << seed + round;
  }
  EXPECT_GT(dropped, 10000u);
  EXPECT_GT(ahead, 10000u);
}

TEST(SelectiveRepeat, PathThatReorders_EverythingArrivesOnce) {
  const uint64_t seed = TestSeed(402);
  for (uint64_t round = 0; round < 300; ++round) {
    Random random(seed + round);
    Scenario run = SomeScenario(random);
    run.rules.late = Below(random, 0.5);
    run.rules.lateness = run.rules.delay * static_cast<int64_t>(random.Between(1, 8));
    SelectivePath path(run.config, run.window, run.first, run.rules, seed * 1000 + round);
    ASSERT_TRUE(path.Run(run.packets, kLongEnough)) << "seed " << seed + round;
    ExpectAllDone(path, run);
    // Nothing is lost permanently, and every loss is detected.
    for (const auto& [number, count] : path.dropped) {
      EXPECT_GE(path.resent[number], count) << number;
    }
    if (HasFailure()) FAIL() << "seed " << seed + round;
  }
}

TEST(SelectiveRepeat, LongRunOverReorderingPath_SendsFewTooMany) {
  const uint64_t seed = TestSeed(403);
  for (const double loss : {0.01, 0.05}) {
    for (const int64_t lateness : {10, 25, 50}) {
      SelectiveConfig config;
      config.cc.window_bytes = 128 * 1024;
      PathRules rules;
      rules.loss = loss;
      rules.late = 0.02;
      rules.lateness = Microseconds(lateness);
      SelectivePath path(config, kMaxFlowPackets, Psn(1000), rules, seed);
      ASSERT_TRUE(path.Run(100000, kLongEnough));
      EXPECT_EQ(path.faults, 0u);
      EXPECT_LE(static_cast<double>(path.resent_count),
                1.1 * static_cast<double>(path.dropped_count))
          << loss << " late by " << lateness << " us, level of spurious " << path.sender.spurious();
    }
  }
}

// 10 Gbit/s, packets of 1024 bytes, 50 us round trip: 61 packets fill the path, the window holds
// 128, so the link is never idle without loss.
TEST(SelectiveRepeat, SaturatedLink_LosesNoMoreThanWhatWasDropped) {
  const uint64_t seed = TestSeed(404);
  constexpr uint64_t kPackets = 60000;
  const auto run = [&](double loss) {
    SelectiveConfig config;
    config.cc.window_bytes = 128 * 1024;
    PathRules rules;
    rules.loss = loss;
    auto path =
        std::make_unique<SelectivePath>(config, kMaxFlowPackets, Psn(0xFFF000), rules, seed);
    EXPECT_TRUE(path->Run(kPackets, kLongEnough));
    EXPECT_EQ(path->faults, 0u);
    return path;
  };
  const auto lossless = run(0);
  const auto start = TimePoint{1'000'000};
  const auto time = static_cast<double>((lossless->now() - start).ns);
  for (const double p : {0.001, 0.01, 0.05}) {
    const auto path = run(p);
    const double goodput = time / static_cast<double>((path->now() - start).ns);
    std::printf("loss %.3f: goodput %.4f of lossless, (1-p) is %.4f; dropped %llu, resent %llu\n",
                p, goodput, 1 - p, static_cast<unsigned long long>(path->dropped_count),
                static_cast<unsigned long long>(path->resent_count));
    EXPECT_GE(goodput, 0.98 * (1 - p));
    EXPECT_EQ(path->resent, path->dropped);
  }
}

}  // namespace
}  // namespace rocegw::flow
