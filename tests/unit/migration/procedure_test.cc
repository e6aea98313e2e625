// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/drive/procedure.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rocegw::migration {
namespace {

TEST(Procedure, EachPrefixOfStepsHasAWayBack) {
  for (const bool restarts : {false, true}) {
    for (size_t issued = 0; issued <= ForwardSteps(restarts).size(); ++issued) {
      const auto undo = UndoSteps(restarts, issued);
      EXPECT_EQ(undo.empty(), issued <= HarmlessSteps());
      if (undo.empty()) continue;
      EXPECT_TRUE(std::ranges::count(undo, Step::kVerifyOld) == 1);
      const auto forward = ForwardSteps(restarts).first(issued);
      const bool switched =
          std::ranges::find(forward, Step::kSwitch, &StepRule::step) != forward.end();
      if (switched) {
        EXPECT_EQ(std::ranges::count(undo, Step::kRestore), 1);
      }
      const bool stopped =
          std::ranges::find(forward, Step::kStop, &StepRule::step) != forward.end();
      if (stopped) {
        EXPECT_EQ(std::ranges::count(undo, Step::kStart), 1);
      }
      if (restarts) {
        EXPECT_EQ(undo.back(), Step::kUncordon);
      }
    }
  }
}

}  // namespace
}  // namespace rocegw::migration
