// SPDX-License-Identifier: Apache-2.0
// Interface of congestion control: every algorithm of the table is complete; the static window.
#include "gateway/flow/congestion.h"

#include <gtest/gtest.h>

namespace rocegw::flow {
namespace {

TEST(Congestion, EveryKind_HasANameAndAllItsFunctions) {
  for (uint8_t i = 0; i < static_cast<uint8_t>(CcKind::kCount); ++i) {
    const CcAlgorithm& algorithm = AlgorithmOf(static_cast<CcKind>(i));
    EXPECT_NE(algorithm.name, nullptr);
    CcState state;
    state.kind = static_cast<CcKind>(i);
    algorithm.init(state, CcConfig{}, TimePoint{1});
    algorithm.on_sent(state, 100, TimePoint{2});
    algorithm.on_feedback(state, CcFeedback{}, TimePoint{3});
    algorithm.on_cnp(state, TimePoint{4});
    algorithm.on_loss(state, TimePoint{5});
    algorithm.on_deadline(state, TimePoint{6});
    EXPECT_GT(algorithm.deadline(state), TimePoint{6});
    EXPECT_GT(algorithm.gate(state, 0).bytes, 0u) << "an idle flow may send";
  }
}

TEST(StaticWindow, Gate_IsWhatIsLeft) {
  const CcAlgorithm& algorithm = AlgorithmOf(CcKind::kStatic);
  CcState state;
  algorithm.init(state, {.window_bytes = 1000}, TimePoint{});
  EXPECT_EQ(algorithm.gate(state, 0).bytes, 1000u);
  EXPECT_EQ(algorithm.gate(state, 400).bytes, 600u);
  EXPECT_EQ(algorithm.gate(state, 1000).bytes, 0u);
  EXPECT_EQ(algorithm.gate(state, 5000).bytes, 0u);
  EXPECT_EQ(algorithm.gate(state, 0).earliest, TimePoint{});
  EXPECT_EQ(algorithm.deadline(state), kNever);
}

TEST(StaticWindow, NothingChangesIt) {
  const CcAlgorithm& algorithm = AlgorithmOf(CcKind::kStatic);
  CcState state;
  algorithm.init(state, {.window_bytes = 1000}, TimePoint{});
  algorithm.on_loss(state, TimePoint{1});
  algorithm.on_cnp(state, TimePoint{1});
  algorithm.on_feedback(state, {.acked_bytes = 5, .marked_bytes = 5}, TimePoint{1});
  EXPECT_EQ(algorithm.gate(state, 0).bytes, 1000u);
  // The state is plain data, so a flow can be copied and handed over.
  const CcState copy = state;
  EXPECT_EQ(algorithm.gate(copy, 1).bytes, 999u);
}

}  // namespace
}  // namespace rocegw::flow
