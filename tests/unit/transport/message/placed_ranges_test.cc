// SPDX-License-Identifier: Apache-2.0
// Bytes that WRITEs have placed, compared with a map of each byte to the newest message.
#include "gateway/transport/message/placed_ranges.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/random.h"

namespace rocegw::testing::placed_ranges {
namespace {

using transport::ByteRange;
using transport::PlacedRanges;
using Pieces = std::vector<ByteRange>;

TEST(PlacedRanges, FramesOfOneMessage_BecomeOneRange) {
  PlacedRanges placed;
  Pieces pieces;
  for (const uint64_t at : {0u, 256u, 1024u, 768u, 512u})
    ASSERT_TRUE(placed.Place(3, {at, at + 256}, true, pieces));
  EXPECT_EQ(placed.size(), 1u);
  EXPECT_TRUE(placed.PlacedAfter(2, {1279, 1300}));
  EXPECT_FALSE(placed.PlacedAfter(2, {1280, 1300}));
  EXPECT_FALSE(placed.PlacedAfter(3, {0, 1280})) << "its own";
  placed.Forget(3, {0, 1280});
  EXPECT_TRUE(placed.empty());
}

TEST(PlacedRanges, WithoutRecord_OldRangesShrinkAllTheSame) {
  PlacedRanges placed;
  Pieces pieces;
  ASSERT_TRUE(placed.Place(1, {0, 100}, true, pieces));
  ASSERT_TRUE(placed.Place(2, {40, 60}, false, pieces));
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(placed.size(), 2u);
  EXPECT_FALSE(placed.PlacedAfter(0, {40, 60}));
}

// A frame of a peer that scatters single bytes would otherwise fall into thousands of pieces.
TEST(PlacedRanges, FrameOverTooManyRanges_ChangesNothing) {
  PlacedRanges placed;
  Pieces pieces;
  constexpr uint64_t kBytes = 4096;
  for (uint64_t at = 0; at < kBytes; at += 2)
    ASSERT_TRUE(placed.Place(5, {at, at + 1}, true, pieces));
  const size_t before = placed.size();
  EXPECT_FALSE(placed.Place(6, {0, kBytes}, true, pieces));
  EXPECT_EQ(placed.size(), before);
}

// Small WRITEs into a block have come before a WRITE of the whole block that is older.
TEST(PlacedRanges, FrameOverAWordsRangeEach_FallsIntoPieces) {
  PlacedRanges placed;
  Pieces pieces;
  constexpr uint64_t kBytes = 4096;
  for (uint64_t at = 0; at < kBytes; at += 8)
    ASSERT_TRUE(placed.Place(5 + at, {at, at + 4}, true, pieces));
  EXPECT_TRUE(placed.Place(4, {0, kBytes}, true, pieces));
  EXPECT_EQ(pieces.size(), kBytes / 8);
}

TEST(PlacedRanges, ForgetBefore_KeepsLaterMessages) {
  PlacedRanges placed;
  Pieces pieces;
  for (uint64_t message = 0; message < 10; ++message)
    ASSERT_TRUE(placed.Place(message, {message * 100, message * 100 + 50}, true, pieces));
  placed.ForgetBefore(7);
  EXPECT_EQ(placed.size(), 3u);
  EXPECT_TRUE(placed.PlacedAfter(6, {900, 910}));
}

TEST(PlacedRanges, ScatteredBytes_AreBounded) {
  PlacedRanges placed;
  Pieces pieces;
  size_t refused = 0;
  for (uint64_t at = 200'000; at != 0; at -= 2)
    refused += placed.Place(1 + at % 7, {at, at + 1}, true, pieces) ? 0 : 1;
  EXPECT_LE(placed.size(), PlacedRanges::kMost);
  EXPECT_EQ(refused, 100'000 - placed.size());
  // Frames that cut ranges of older messages into pieces are bounded too.
  placed.clear();
  ASSERT_TRUE(placed.Place(1, {0, 200'000}, true, pieces));
  for (uint64_t at = 1; at < 200'000; at += 2) placed.Place(2, {at, at + 1}, false, pieces);
  EXPECT_LE(placed.size(), PlacedRanges::kMost);
}

// Frames of several WRITEs to the same memory arrive in any order, some of them twice. The pieces
// are the bytes that no newer message has placed.
TEST(PlacedRanges, RandomFrames_AsAMapOfBytesSays) {
  Random random(TestSeed(20261129));
  for (int round = 0; round < 2000; ++round) {
    PlacedRanges placed;
    std::map<uint64_t, uint64_t> newest;  // message by byte
    Pieces pieces;
    for (size_t step = random.Below(40); step > 0; --step) {
      const uint64_t message = random.Between(1, 5);
      const uint64_t from = 1000 + random.Below(200);
      const ByteRange range{from, from + random.Between(1, 60)};
      ASSERT_TRUE(placed.Place(message, range, true, pieces));
      uint64_t last = 0;
      std::map<uint64_t, uint64_t> expected = newest;
      for (const ByteRange& piece : pieces) {
        ASSERT_FALSE(piece.empty());
        ASSERT_TRUE(last < piece.begin || last == 0) << "in order, and apart";
        last = piece.end;
        for (uint64_t k = piece.begin; k < piece.end; ++k) expected[k] = message;
      }
      for (uint64_t k = range.begin; k < range.end; ++k) newest[k] = std::max(newest[k], message);
      ASSERT_EQ(expected, newest) << "round " << round;
    }
    std::map<uint64_t, uint64_t> kept;
    placed.ForEach([&](uint64_t message, ByteRange range) {
      ASSERT_FALSE(range.empty());
      for (uint64_t k = range.begin; k < range.end; ++k)
        ASSERT_TRUE(kept.emplace(k, message).second) << "ranges overlap";
    });
    ASSERT_EQ(kept, newest) << "round " << round;
  }
}

}  // namespace
}  // namespace rocegw::testing::placed_ranges
