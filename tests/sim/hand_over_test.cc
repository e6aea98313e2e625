// SPDX-License-Identifier: Apache-2.0
// Random worlds whose hosts are handed over to fresh objects at random moments: nothing that a
// program or a peer sees may change, so the trace of packets is that of the world without
// hand-overs. ROCEGW_TEST_SEED=n runs only world n (a failure prints its seed);
// ROCEGW_SIM_HAND_OVERS=n makes at least n hand-overs.
//
// When whole workers are replaced, hosts pause for a moment, so the trace differs. The oracle
// holds: every request completes exactly once with the right data, and memory holds nothing else.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>

#include "tests/sim/oracle/scenario.h"

namespace rocegw::sim {
namespace {

constexpr uint64_t kHandOvers = 20'000;
constexpr uint64_t kReplacements = 5'000;

// A run that crashes must tell its first seed as well.
void PrintFirst(uint64_t seed) {
  std::printf("first ROCEGW_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
}

uint64_t Variable(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

TEST(HandOver, AtRandomMoments_ChangesNothing) {
  const bool one = std::getenv("ROCEGW_TEST_SEED") != nullptr;
  const uint64_t base = one ? Variable("ROCEGW_TEST_SEED", 0) : std::random_device()();
  const uint64_t least = one ? 0 : Variable("ROCEGW_SIM_HAND_OVERS", kHandOvers);
  PrintFirst(base);
  OracleResult sum;
  uint64_t done = 0;
  int failures = 0;
  do {
    const uint64_t seed = base + done++;
    const OracleResult plain = RunOracle(seed);
    const OracleResult result =
        RunOracle(seed, Sabotage::kNone, OracleChannels::kBySeed, OracleHandOvers::kRandom);
    sum.hand_overs += result.hand_overs;
    sum.handed_over += result.handed_over;
    sum.not_handed_over += result.not_handed_over;
    sum.retransmitted += result.retransmitted;
    sum.requests += result.requests;
    if (result.ok() && result.trace_hash == plain.trace_hash) continue;
    ADD_FAILURE() << "ROCEGW_TEST_SEED=" << seed << ": "
                  << (result.ok() ? "another trace than without hand-overs" : result.failure)
                  << "\n  " << plain.world;
    if (++failures == 5) break;
  } while (sum.hand_overs < least);
  std::printf(
      "seeds %llu to %llu: %llu hand-overs of %llu objects, %llu left, %llu requests, "
      "%llu packets again\n",
      static_cast<unsigned long long>(base), static_cast<unsigned long long>(base + done - 1),
      static_cast<unsigned long long>(sum.hand_overs),
      static_cast<unsigned long long>(sum.handed_over),
      static_cast<unsigned long long>(sum.not_handed_over),
      static_cast<unsigned long long>(sum.requests),
      static_cast<unsigned long long>(sum.retransmitted));
}

// Worlds in which replies that waited for window, or the times of searches, once changed the trace.
TEST(HandOver, WithBlockedReplies_ChangesNothing) {
  for (const uint64_t seed : {949'481'586u, 2'444'604'036u, 1'122'888'690u}) {
    const OracleResult result =
        RunOracle(seed, Sabotage::kNone, OracleChannels::kBySeed, OracleHandOvers::kRandom);
    EXPECT_EQ(result.failure, "");
    EXPECT_EQ(result.trace_hash, RunOracle(seed).trace_hash) << seed;
  }
}

TEST(HandOver, OfWholeWorkers_AtRandomMoments_CompletesEveryRequestOnce) {
  const bool one = std::getenv("ROCEGW_TEST_SEED") != nullptr;
  const uint64_t base = one ? Variable("ROCEGW_TEST_SEED", 0) : std::random_device()();
  const uint64_t least = one ? 0 : Variable("ROCEGW_SIM_HAND_OVERS", kReplacements);
  PrintFirst(base);
  uint64_t replacements = 0, requests = 0, done = 0, without_loss = 0;
  int failures = 0;
  do {
    const uint64_t seed = base + done++;
    const OracleResult result =
        RunOracle(seed, Sabotage::kNone, OracleChannels::kBySeed, OracleHandOvers::kWorkers);
    replacements += result.hand_overs;
    requests += result.requests + result.endpoint_requests;
    without_loss += result.lost == 0 && result.retransmitted == 0 ? 1 : 0;
    if (result.ok()) continue;
    ADD_FAILURE() << "ROCEGW_TEST_SEED=" << seed << ": " << result.failure << "\n  "
                  << result.world;
    if (++failures == 5) break;
  } while (replacements < least);
  const auto wide = [](uint64_t number) { return static_cast<unsigned long long>(number); };
  std::printf(
      "seeds %llu to %llu: workers of hosts replaced %llu times, %llu requests, nothing repeated "
      "in %llu of %llu worlds\n",
      wide(base), wide(base + done - 1), wide(replacements), wide(requests), wide(without_loss),
      wide(done));
}

}  // namespace
}  // namespace rocegw::sim
