// SPDX-License-Identifier: Apache-2.0
// Invariants of every algorithm under any events: the gate stays within its limits, numbers stay
// finite, deadlines advance, and a copy behaves like the original.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "gateway/flow/congestion.h"
#include "tests/support/random.h"

namespace rocegw::testing {
namespace {

using flow::CcAlgorithm;
using flow::CcFeedback;
using flow::CcKind;
using flow::CcProfile;
using flow::CcState;

class AnyAlgorithm : public ::testing::TestWithParam<std::tuple<size_t, int>> {};

// Returns a profile with random parameters within their limits.
CcProfile RandomProfile(Random& random, CcKind kind) {
  CcProfile profile;
  profile.link_bits_per_second = random.Coin() ? 0 : random.Between(1'000'000, 800'000'000'000);
  profile.burst = Microseconds(static_cast<int64_t>(random.Below(500)));
  for (const flow::CcParameter& parameter : flow::AlgorithmOf(kind).parameters) {
    if (random.Coin()) continue;
    EXPECT_TRUE(profile.Set(kind, parameter.name, random.Between(parameter.least, parameter.most)));
  }
  return profile;
}

TEST_P(AnyAlgorithm, RandomEvents_BoundsHold) {
  const auto [index, number] = GetParam();
  const auto kind = static_cast<CcKind>(index);
  const CcAlgorithm& algorithm = flow::AlgorithmOf(kind);
  Random random(TestSeed(static_cast<uint64_t>(number) * 1000 + index));
  const CcProfile profile = RandomProfile(random, kind);
  const flow::CcConfig config{
      .kind = kind,
      .window_bytes = static_cast<uint32_t>(random.Between(1, random.Coin() ? 4096 : 64 << 20)),
      .packet_bytes = static_cast<uint32_t>(random.Between(256, 4096)),
      .profile = &profile};
  TimePoint now{1'000'000'000};
  CcState state;
  state.kind = kind;
  algorithm.init(state, config, now);
  uint64_t in_flight = 0;
  for (int step = 0; step < 20000; ++step) {
    // Steps from 0 to hours.
    const auto scale = random.Below(12);
    int64_t wait = static_cast<int64_t>(random.Below(1000));
    for (size_t i = 0; i < scale / 2; ++i) wait *= 8;
    if (random.Below(4) != 0) now = now + Duration{wait};
    CcState copy;
    std::memcpy(static_cast<void*>(&copy), &state, sizeof state);
    const auto apply = [&](CcState& s, uint64_t choice, uint64_t value) {
      switch (choice) {
        case 0:
        case 1:
          algorithm.on_sent(s, value % (128 << 10), now);
          break;
        case 2:
        case 3:
        case 4:
          algorithm.on_feedback(
              s,
              {.acked_bytes = value % (in_flight + 1),
               .marked_bytes = choice == 2 ? value % (in_flight + 1) : 0,
               .in_flight_before = in_flight,
               .rtt = Duration{static_cast<int64_t>(value % 3 == 0 ? 0 : value % 50'000'000)},
               .hint = static_cast<uint8_t>(value >> 40)},
              now);
          break;
        case 5:
          algorithm.on_cnp(s, now);
          break;
        case 6:
          algorithm.on_loss(s, now);
          break;
        case 7:
          if (algorithm.deadline(s) <= now) algorithm.on_deadline(s, now);
          break;
        default:
          algorithm.take_over(s, {value % (256 << 20), Duration{static_cast<int64_t>(value >> 36)}},
                              now);
          break;
      }
    };
    const uint64_t choice = random.Below(random.Below(50) == 0 ? 9 : 8);
    const uint64_t value = random.Bits();
    apply(state, choice, value);
    apply(copy, choice, value);
    ASSERT_EQ(std::memcmp(&state, &copy, sizeof state), 0) << "the same events, the same state";
    in_flight = random.Below(2 * uint64_t{config.window_bytes});
    const flow::SendGate idle = algorithm.gate(state, 0);
    ASSERT_GT(idle.bytes, 0u) << "a flow with nothing in flight may send";
    ASSERT_LE(idle.bytes, std::max<uint64_t>(config.window_bytes, config.packet_bytes));
    const flow::SendGate gate = algorithm.gate(state, in_flight);
    ASSERT_LE(gate.bytes + std::min<uint64_t>(in_flight, idle.bytes), idle.bytes);
    ASSERT_LE(gate.earliest, now + Seconds(2)) << "no flow waits for ever";
    const uint64_t window =
        algorithm.window(state, Microseconds(static_cast<int64_t>(random.Below(1000))));
    ASSERT_GE(window, 1u);
    ASSERT_LE(window, std::max<uint64_t>(config.window_bytes, 1));
    if (algorithm.deadline(state) <= now) {
      algorithm.on_deadline(state, now);
      ASSERT_GT(algorithm.deadline(state), now) << "a deadline that was served is over";
    }
  }
}

TEST_P(AnyAlgorithm, DeadlinesServedInTime_NeverGoBack) {
  const auto [index, number] = GetParam();
  const auto kind = static_cast<CcKind>(index);
  const CcAlgorithm& algorithm = flow::AlgorithmOf(kind);
  Random random(TestSeed(static_cast<uint64_t>(number) * 777 + index));
  const CcProfile profile = RandomProfile(random, kind);
  CcState state;
  state.kind = kind;
  TimePoint now{1'000'000'000};
  algorithm.init(state, {.kind = kind, .profile = &profile}, now);
  for (int i = 0; i < 50; ++i) algorithm.on_cnp(state, now + Microseconds(10) * i);
  now = now + Milliseconds(1);
  algorithm.on_sent(state, 4096, now);
  for (int i = 0; i < 1000; ++i) {
    const TimePoint deadline = algorithm.deadline(state);
    if (deadline == kNever) break;
    ASSERT_GE(deadline, now);
    now = deadline;
    algorithm.on_deadline(state, now);
    ASSERT_GT(algorithm.deadline(state), now);
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, AnyAlgorithm,
                         ::testing::Combine(::testing::Range<size_t>(0, flow::kCcKinds),
                                            ::testing::Range(1, 9)),
                         [](const auto& test) {
                           const auto kind = static_cast<CcKind>(std::get<0>(test.param));
                           return std::string(flow::AlgorithmOf(kind).name) + "_" +
                                  std::to_string(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace rocegw::testing
