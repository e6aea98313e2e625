// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/session/copy_rounds.h"

#include <gtest/gtest.h>

namespace rocegw::far {
namespace {

using std::chrono::seconds;

class CopyRoundsTest : public testing::Test {
 protected:
  CopyRounds rounds_;
  CopyRounds::TimePoint now_{seconds(1000)};
};

TEST_F(CopyRoundsTest, GoesOnBehindTheSlabThatEnded) {
  rounds_.SlabEnded(4);
  EXPECT_EQ(rounds_.place().slab, 5u);
  EXPECT_EQ(rounds_.place().position, 0u);
  rounds_.RoundEnded(now_);
  EXPECT_EQ(rounds_.place().slab, 0u);
  EXPECT_TRUE(rounds_.MayCopy(now_));
}

TEST_F(CopyRoundsTest, FailureIsPassedOverAndPausesAfterTheRound) {
  EXPECT_TRUE(rounds_.StretchEnded(false, {0, 4096}, now_));
  EXPECT_TRUE(rounds_.StretchEnded(true, {0, 8192}, now_));
  EXPECT_TRUE(rounds_.MayCopy(now_));
  rounds_.RoundEnded(now_);
  EXPECT_FALSE(rounds_.MayCopy(now_));
  EXPECT_TRUE(rounds_.MayCopy(now_ + seconds(1)));
  rounds_.Resume();
  EXPECT_TRUE(rounds_.MayCopy(now_));
}

TEST_F(CopyRoundsTest, PausesGrowWhileRoundsFail) {
  for (const int pause : {1, 2, 4, 8, 16, 30, 30}) {
    rounds_.StretchEnded(false, {0, 4096}, now_);
    rounds_.RoundEnded(now_);
    EXPECT_FALSE(rounds_.MayCopy(now_ + seconds(pause) - std::chrono::milliseconds(1)));
    now_ += seconds(pause);
    EXPECT_TRUE(rounds_.MayCopy(now_)) << pause;
  }
  rounds_.RoundEnded(now_);
  rounds_.StretchEnded(false, {0, 4096}, now_);
  rounds_.RoundEnded(now_);
  EXPECT_TRUE(rounds_.MayCopy(now_ + seconds(1)));
}

TEST_F(CopyRoundsTest, ManyFailuresInARowPauseWithinTheRoundWhichGoesOnThere) {
  for (uint32_t number = 1; number < CopyRounds::kMostFailuresInARow; number++) {
    EXPECT_TRUE(rounds_.StretchEnded(false, {3, number * 4096}, now_));
  }
  EXPECT_FALSE(rounds_.StretchEnded(false, {3, 65536}, now_));
  EXPECT_FALSE(rounds_.MayCopy(now_));
  EXPECT_EQ(rounds_.place().slab, 3u);
  EXPECT_EQ(rounds_.place().position, 65536u);
  EXPECT_TRUE(rounds_.StretchEnded(false, {3, 69632}, now_));
}

}  // namespace
}  // namespace rocegw::far
