// SPDX-License-Identifier: Apache-2.0
// Hints of a path's load: levels, changes by a switch, echo of a receiver.
#include "gateway/wire/congestion_hint.h"

#include <gtest/gtest.h>

namespace rocegw::wire {
namespace {

TEST(CongestionHint, Levels_FromIdleToFull) {
  EXPECT_EQ(HintLevel(0, 1000), 1);
  EXPECT_EQ(HintLevel(1, 1000), 2) << "a little is not nothing";
  EXPECT_EQ(HintLevel(500, 1000), 32);
  EXPECT_EQ(HintLevel(999, 1000), 63);
  EXPECT_EQ(HintLevel(1000, 1000), 63);
  EXPECT_EQ(HintLevel(UINT32_MAX, 1000), 63);
}

TEST(CongestionHint, Switch_StampsItsQueue) {
  const uint8_t wish = MakeHint(true);
  EXPECT_EQ(RaiseHint(wish, 0, 1000, 2000), kHintIncrease | 1);
  EXPECT_EQ(RaiseHint(wish, 1000, 1000, 2000), kHintIncrease | 1);
  EXPECT_EQ(RaiseHint(wish, 1500, 1000, 2000), kHintCongested | kHintIncrease | 32);
  EXPECT_EQ(RaiseHint(wish, 2000, 1000, 2000), kHintCongested | 63) << "no room: no increase";
  EXPECT_EQ(RaiseHint(MakeHint(false), 0, 1000, 2000), 1) << "who does not ask gets none";
}

TEST(CongestionHint, Path_TheFullestPlaceCounts) {
  uint8_t hint = RaiseHint(MakeHint(true), 1500, 1000, 2000);
  EXPECT_EQ(RaiseHint(hint, 1100, 1000, 2000), hint);
  EXPECT_GT(RaiseHint(hint, 1900, 1000, 2000) & kHintLevelMask, hint & kHintLevelMask);
}

TEST(HintMeter, Stamped_MeanByBytes) {
  HintMeter meter;
  EXPECT_EQ(meter.Take(), 0) << "nothing came";
  meter.OnFrame(HintOfLevel(11, true), false, 2816);
  meter.OnFrame(HintOfLevel(51, true), false, 896);
  EXPECT_EQ(meter.Take(), HintOfLevel(21, true));
  EXPECT_EQ(meter.Take(), 0) << "taken away";
}

TEST(HintMeter, NobodyStamps_ShareOfMarks) {
  HintMeter meter;
  for (int i = 0; i < 4; ++i) meter.OnFrame(MakeHint(true), i == 0, 999);
  EXPECT_EQ(meter.Take(), HintOfLevel(HintLevel(1, 4), true));
  meter.OnFrame(MakeHint(true), false, 999);
  EXPECT_EQ(meter.Take(), 0) << "no mark and no stamp: nothing is known";
}

TEST(HintMeter, OneFrameWithoutIncrease_NoIncrease) {
  HintMeter meter;
  meter.OnFrame(HintOfLevel(1, true), false, 10);
  meter.OnFrame(HintOfLevel(1, false), false, 10);
  EXPECT_EQ(meter.Take(), HintOfLevel(1, false));
}

TEST(HintMeter, FramesWithoutPayload_TellToo) {
  HintMeter meter;
  meter.OnFrame(HintOfLevel(40, true), false, 0);
  EXPECT_EQ(meter.Take(), HintOfLevel(40, true));
}

}  // namespace
}  // namespace rocegw::wire
