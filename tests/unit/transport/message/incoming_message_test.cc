// SPDX-License-Identifier: Apache-2.0
// Placed bytes of a WRITE, compared with a set of bytes.
#include "gateway/transport/message/incoming_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/random.h"

namespace rocegw::testing::incoming_message {
namespace {

using transport::ByteRange;
using transport::IncomingMessage;

IncomingMessage WriteOf(uint32_t length, uint64_t local) {
  IncomingMessage message;
  message.Begin({.kind = wire::FrameKind::kWrite, .length = length});
  message.local = local;
  return message;
}

TEST(IncomingMessage, NothingHasCome_IsNotSeen) {
  IncomingMessage message;
  EXPECT_FALSE(message.seen());
  EXPECT_FALSE(message.whole());
}

TEST(IncomingMessage, LengthZero_WholeWithItsFirstFrame) {
  EXPECT_TRUE(WriteOf(0, 0).whole());
  EXPECT_FALSE(WriteOf(1, 0).whole());
  IncomingMessage read;
  read.Begin({.kind = wire::FrameKind::kReadRequest, .length = 4096});
  EXPECT_TRUE(read.whole()) << "its length is what it asks for";
}

TEST(IncomingMessage, WhatItTakesAReceiveFor) {
  IncomingMessage message = WriteOf(4, 0);
  EXPECT_FALSE(message.takes_receive());
  message.flags = wire::kFrameImmediate;
  EXPECT_TRUE(message.takes_receive());
  message.Begin({.kind = wire::FrameKind::kSend});
  EXPECT_TRUE(message.takes_receive());
}

TEST(IncomingMessage, LastIsTheFrames_NotTheMessages) {
  IncomingMessage message;
  message.Begin(
      {.kind = wire::FrameKind::kSend, .flags = wire::kFrameLast | wire::kFrameSolicited});
  EXPECT_EQ(message.flags, wire::kFrameSolicited);
}

TEST(IncomingMessage, FramesInOrder_LeaveNoIslands) {
  IncomingMessage message = WriteOf(4096, 0);
  for (uint32_t at = 0; at < 4096; at += 256) message.AddPlaced(at, at + 256);
  EXPECT_EQ(message.prefix, 4096u);
  EXPECT_TRUE(message.islands.empty());
}

TEST(IncomingMessage, HoleFilled_PrefixSwallowsTheIslands) {
  IncomingMessage message = WriteOf(4096, 0);
  message.AddPlaced(1024, 1280);
  message.AddPlaced(256, 512);
  message.AddPlaced(512, 768);
  EXPECT_EQ(message.islands.size(), 2u);
  message.AddPlaced(0, 256);
  EXPECT_EQ(message.prefix, 768u);
  ASSERT_EQ(message.islands.size(), 1u);
  EXPECT_EQ(message.islands[0].begin, 1024u);
}

TEST(IncomingMessage, Subtract_OfAnythingButAWrite_TakesNothing) {
  IncomingMessage message;
  message.Begin({.kind = wire::FrameKind::kSend, .length = 100});
  message.prefix = 100;
  std::vector<ByteRange> pieces{{0, 50}};
  message.Subtract(pieces);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].end, 50u);
}

// Frames of several WRITEs to the same memory arrive in any order. Subtract leaves what the set of
// bytes says.
TEST(IncomingMessage, RandomFrames_SubtractIsWhatASetOfBytesSays) {
  Random random(TestSeed(20261122));
  for (int round = 0; round < 2000; ++round) {
    constexpr uint32_t kUnit = 16;
    std::vector<IncomingMessage> messages;
    std::vector<std::vector<uint32_t>> frames;  // offsets of frames that have not arrived
    std::set<uint64_t> placed;
    for (size_t i = random.Between(1, 3); i > 0; --i) {
      const auto units = static_cast<uint32_t>(random.Between(1, 12));
      messages.push_back(WriteOf(units * kUnit, 1000 + random.Below(200)));
      frames.emplace_back();
      for (uint32_t unit = 0; unit < units; ++unit) frames.back().push_back(unit * kUnit);
    }
    for (size_t step = random.Below(20); step > 0; --step) {
      const size_t which = random.Below(messages.size());
      if (frames[which].empty()) continue;
      const size_t at = random.Below(frames[which].size());
      const uint32_t offset = frames[which][at];
      frames[which].erase(frames[which].begin() + static_cast<ptrdiff_t>(at));
      // The end of a message's last frame may be held back.
      const uint32_t bytes = random.Coin() ? kUnit : kUnit / 2;
      messages[which].AddPlaced(offset, offset + bytes);
      for (uint32_t k = 0; k < bytes; ++k) placed.insert(messages[which].local + offset + k);
    }
    const uint64_t from = 990 + random.Below(200);
    const uint64_t to = from + random.Between(1, 200);
    std::vector<ByteRange> pieces{{from, to}};
    for (const IncomingMessage& message : messages) message.Subtract(pieces);
    std::set<uint64_t> left;
    for (const ByteRange& piece : pieces) {
      ASSERT_FALSE(piece.empty());
      for (uint64_t k = piece.begin; k < piece.end; ++k)
        ASSERT_TRUE(left.insert(k).second) << "round " << round << ": twice";
    }
    for (uint64_t k = from; k < to; ++k)
      ASSERT_NE(left.count(k), placed.count(k)) << "round " << round << " byte " << k;
    ASSERT_EQ(left.size(),
              to - from -
                  static_cast<size_t>(std::count_if(placed.begin(), placed.end(), [&](uint64_t k) {
                    return from <= k && k < to;
                  })));
  }
}

}  // namespace
}  // namespace rocegw::testing::incoming_message
