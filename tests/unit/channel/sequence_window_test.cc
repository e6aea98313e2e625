// SPDX-License-Identifier: Apache-2.0
// Each sequence number of sealed datagrams is accepted once; checked against a set of numbers.
#include "gateway/channel/protection/sequence_window.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/random.h"

namespace rocegw::channel {
namespace {

TEST(SequenceWindowTest, NumberIsTakenOnce_InAnyOrder) {
  SequenceWindow window;
  for (const uint64_t sequence : {5u, 3u, 4u, 900u, 6u}) {
    EXPECT_TRUE(window.IsNew(sequence));
    window.Take(sequence);
    EXPECT_FALSE(window.IsNew(sequence));
  }
}

TEST(SequenceWindowTest, FarBehindTheHighest_IsNotNew) {
  SequenceWindow window;
  window.Take(10'000);
  EXPECT_TRUE(window.IsNew(10'000 - SequenceWindow::kWidth + 1));
  EXPECT_FALSE(window.IsNew(10'000 - SequenceWindow::kWidth));
  EXPECT_FALSE(window.IsNew(1));
}

TEST(SequenceWindowTest, LongJump_ForgetsNothingThatCounts) {
  SequenceWindow window;
  window.Take(7);
  const uint64_t far = uint64_t{1} << 40;
  window.Take(far);
  EXPECT_FALSE(window.IsNew(far));
  EXPECT_TRUE(window.IsNew(far - 1));
  EXPECT_TRUE(window.IsNew(far + 1));
  EXPECT_FALSE(window.IsNew(7));
}

TEST(SequenceWindowTest, RandomOrder_AsASetOfNumbers) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    testing::Random random(seed);
    SequenceWindow window;
    std::set<uint64_t> taken;
    uint64_t highest = 0;
    for (int i = 0; i < 5000; ++i) {
      const uint64_t back = random.Below(1200);
      const uint64_t ahead = random.Below(random.Below(50) == 0 ? 3000 : 4);
      const uint64_t sequence = std::max<uint64_t>(1, highest + ahead - std::min(highest, back));
      const bool wanted = !taken.contains(sequence) &&
                          (sequence > highest || highest - sequence < SequenceWindow::kWidth);
      ASSERT_EQ(window.IsNew(sequence), wanted) << seed << " " << sequence << " " << highest;
      if (!wanted) continue;
      window.Take(sequence);
      taken.insert(sequence);
      highest = std::max(highest, sequence);
    }
  }
}

}  // namespace
}  // namespace rocegw::channel
