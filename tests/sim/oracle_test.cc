// SPDX-License-Identifier: Apache-2.0
// Thousands of random worlds, new ones in every run, checked by the oracle. ROCEGW_TEST_SEED=n runs
// only world n (a failure prints its seed); ROCEGW_SIM_SEEDS=n runs n worlds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/sim/oracle/arena.h"
#include "tests/sim/oracle/scenario.h"

namespace rocegw::sim {
namespace {

constexpr uint64_t kSeeds = 2000;
constexpr uint64_t kPackets = 1'000'000;

uint64_t Variable(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

TEST(Oracle, RandomWorlds_KeepEveryPromise) {
  const bool one = std::getenv("ROCEGW_TEST_SEED") != nullptr;
  const uint64_t base = one ? Variable("ROCEGW_TEST_SEED", 0) : std::random_device()();
  const uint64_t seeds = one ? 1 : Variable("ROCEGW_SIM_SEEDS", kSeeds);
  std::printf("seeds %llu to at least %llu\n", static_cast<unsigned long long>(base),
              static_cast<unsigned long long>(base + seeds - 1));
  std::fflush(stdout);  // also before a crash
  OracleResult sum;
  uint64_t done = 0;
  int failures = 0;
  // Runs more worlds if those of this run are small.
  while (done < seeds || (!one && seeds >= kSeeds && sum.packets < kPackets)) {
    const uint64_t seed = base + done++;
    const OracleResult result = RunOracle(seed);
    sum.packets += result.packets;
    sum.requests += result.requests;
    sum.bytes += result.bytes;
    sum.lost += result.lost;
    sum.retransmitted += result.retransmitted;
    sum.channel_frames += result.channel_frames;
    sum.bundled += result.bundled;
    sum.engine_copies += result.engine_copies;
    sum.declined += result.declined;
    sum.less_order += result.less_order;
    sum.shared += result.shared;
    sum.endpoint_requests += result.endpoint_requests;
    if (one) std::printf("%s\n", result.world.c_str());
    if (result.ok()) continue;
    ADD_FAILURE() << "ROCEGW_TEST_SEED=" << seed << ": " << result.failure << "\n  "
                  << result.world;
    if (++failures == 5) break;
  }
  // A substantial share of the worlds uses channels and the other features.
  if (done >= kSeeds) {
    EXPECT_GT(sum.channel_frames, kPackets / 10);
    EXPECT_GT(sum.bundled, kPackets / 100);
    EXPECT_GT(sum.engine_copies, kPackets / 50);
    EXPECT_GT(sum.declined, kSeeds / 20);
    EXPECT_GT(sum.less_order, kSeeds / 4);
    EXPECT_GT(sum.shared, kSeeds / 4);
    EXPECT_GT(sum.endpoint_requests, kSeeds * 5);
  }
  std::printf(
      "%llu worlds, %llu packets, %llu lost, %llu again, %llu channel frames, %llu requests, %llu "
      "MB\n",
      static_cast<unsigned long long>(done), static_cast<unsigned long long>(sum.packets),
      static_cast<unsigned long long>(sum.lost), static_cast<unsigned long long>(sum.retransmitted),
      static_cast<unsigned long long>(sum.channel_frames),
      static_cast<unsigned long long>(sum.requests),
      static_cast<unsigned long long>(sum.bytes >> 20));
}

// A channel that recovers losses more slowly than a queue pair's retries last must not end requests
// whose frames still arrive.
TEST(Oracle, SlowChannel_EndsNoRequest) {
  const OracleResult result = RunOracle(778300, Sabotage::kNone, OracleChannels::kAlways);
  EXPECT_TRUE(result.ok()) << result.failure << "\n  " << result.world;
}

// A paced channel with a full window and waiting queue pairs: its worker must wait for an
// acknowledgement. It once polled the channel instead (20 million iterations).
TEST(Oracle, FullWindowOfAPacedChannel_IsNotLookedAtAllTheTime) {
  const OracleResult result = RunOracle(2242479861, Sabotage::kNone);
  EXPECT_TRUE(result.ok()) << result.failure << "\n  " << result.world;
}

TEST(Oracle, StrayByte_IsNoticed) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const OracleResult result = RunOracle(seed, Sabotage::kStrayByte);
    EXPECT_NE(result.failure.find("nobody may have"), std::string::npos) << seed;
  }
}

TEST(Oracle, WrongAnswerOfARead_IsNoticed) {
  int noticed = 0, by_endpoints = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const OracleResult result = RunOracle(seed, Sabotage::kWrongAnswer);
    EXPECT_FALSE(result.ok()) << seed;
    if (result.failure.find("READ ") == std::string::npos) continue;
    ++noticed;
    by_endpoints += result.failure.find("endpoint") != std::string::npos ? 1 : 0;
  }
  // Some worlds have no READs; there the final memory comparison detects the error.
  EXPECT_GE(noticed, 20);
  EXPECT_GE(by_endpoints, 1);
}

TEST(Oracle, SuccessBehindAFailure_IsNoticed) {
  int noticed = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const OracleResult result = RunOracle(seed, Sabotage::kNoFlush);
    if (result.ok()) continue;
    EXPECT_NE(result.failure.find("success where none can be"), std::string::npos)
        << seed << ": " << result.failure;
    ++noticed;
  }
  // Only one connection in ten ends with a failure, and not all of them have a later request.
  EXPECT_GE(noticed, 10);
}

TEST(Arena, OnlyWhatIsExpected_IsEqual) {
  std::vector<uint8_t> memory(4096);
  Arena arena(memory);
  EXPECT_EQ(arena.FirstDifference(), 4096u);
  arena.Write(100, 50, 7, 0);
  EXPECT_EQ(arena.FirstDifference(), 4096u);
  // Expected bytes that another party must write.
  arena.Expect(1000, 13, 9, 5);
  EXPECT_EQ(arena.FirstDifference(), 1000u);
  Fill(9, 5, std::span(memory).subspan(1000, 13));
  EXPECT_EQ(arena.FirstDifference(), 4096u);
  memory[1012] ^= 1;
  EXPECT_EQ(arena.FirstDifference(900, 200), 1012u);
  EXPECT_EQ(arena.FirstDifference(900, 100), 1000u);
  arena.Forget(1012, 1);
  EXPECT_EQ(arena.FirstDifference(), 4096u);
}

TEST(Content, OfAStream_IsTheSameFromEveryOffset) {
  std::vector<uint8_t> whole(300);
  Fill(42, 0, whole);
  for (uint64_t from = 0; from < 40; ++from) {
    std::vector<uint8_t> part(77);
    Fill(42, from, part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<ptrdiff_t>(from)));
  }
}

TEST(Oracle, SameSeed_SameTrace) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const OracleResult first = RunOracle(seed);
    const OracleResult second = RunOracle(seed);
    EXPECT_EQ(first.trace_hash, second.trace_hash) << seed;
    EXPECT_EQ(first.virtual_seconds, second.virtual_seconds) << seed;
    EXPECT_NE(first.trace_hash, RunOracle(seed + 1000).trace_hash) << seed;
  }
}

}  // namespace
}  // namespace rocegw::sim
