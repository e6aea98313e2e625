// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/ready_frames.h"

#include <gtest/gtest.h>

#include <vector>

namespace rocegw::port {
namespace {

std::vector<int> In(ReadyFrames<int>& ready) {
  const auto frames = ready.frames();
  return {frames.begin(), frames.end()};
}

TEST(ReadyFrames, SentFramesLeaveFirst) {
  ReadyFrames<int> ready(4);
  EXPECT_TRUE(ready.empty());
  for (int frame = 1; frame <= 3; ++frame) ready.Add(frame);
  ready.Sent(2);
  EXPECT_EQ(In(ready), (std::vector<int>{3}));
  ready.Sent(1);
  EXPECT_TRUE(ready.empty());
}

TEST(ReadyFrames, RoomOfSentFrames_IsUsedWithoutSending) {
  ReadyFrames<int> ready(4);
  for (int frame = 1; frame <= 4; ++frame) ready.Add(frame);
  ready.Sent(2);
  EXPECT_TRUE(ready.MakeRoom(2, [] { ADD_FAILURE() << "two places are free"; }));
  ready.Add(5);
  ready.Add(6);
  EXPECT_EQ(In(ready), (std::vector<int>{3, 4, 5, 6}));
}

TEST(ReadyFrames, WhenFull_FramesAreSentFirst) {
  ReadyFrames<int> ready(4);
  for (int frame = 1; frame <= 4; ++frame) ready.Add(frame);
  EXPECT_FALSE(ready.MakeRoom(1, [] {})) << "nothing could be sent";
  EXPECT_TRUE(ready.MakeRoom(1, [&] { ready.Sent(1); }));
  EXPECT_EQ(In(ready), (std::vector<int>{2, 3, 4}));
  EXPECT_FALSE(ready.MakeRoom(2, [] {})) << "a frame of two pieces";
  EXPECT_TRUE(ready.MakeRoom(2, [&] { ready.Sent(3); }));
  EXPECT_TRUE(ready.empty());
}

}  // namespace
}  // namespace rocegw::port
