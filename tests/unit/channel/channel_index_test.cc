// SPDX-License-Identifier: Apache-2.0
// Channels by hash, including equal hashes.
#include "gateway/channel/channel_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tests/support/random.h"

namespace rocegw::testing::channel_index {
namespace {

using channel::ChannelIndex;

// Slots by number; all of one class of `classes` share a hash.
struct Slots {
  uint32_t classes;
  uint32_t operator()(uint32_t slot) const { return slot % classes * 77; }
};

int64_t FindSlot(const ChannelIndex& index, uint32_t slot, Slots hash_of) {
  return index.Find(hash_of(slot), [&](uint32_t at) { return at == slot; });
}

TEST(ChannelIndex, Empty_FindsAndErasesNothing) {
  ChannelIndex index(1);
  EXPECT_EQ(FindSlot(index, 5, {1}), -1);
  index.Erase(5, Slots{1});
  EXPECT_EQ(index.bytes(), 0u);
}

TEST(ChannelIndex, OfOneHash_EachIsFoundByWhatItIs) {
  ChannelIndex index(1);
  for (uint32_t slot : {5, 6, 7}) index.Insert(slot, Slots{1});
  for (uint32_t slot : {5, 6, 7}) EXPECT_EQ(FindSlot(index, slot, {1}), slot);
  EXPECT_EQ(FindSlot(index, 8, {1}), -1);
}

TEST(ChannelIndex, FirstOfAHashErased_TheOthersStay) {
  ChannelIndex index(1);
  for (uint32_t slot : {5, 6, 7}) index.Insert(slot, Slots{1});
  index.Erase(5, Slots{1});
  EXPECT_EQ(FindSlot(index, 5, {1}), -1);
  EXPECT_EQ(FindSlot(index, 6, {1}), 6);
  EXPECT_EQ(FindSlot(index, 7, {1}), 7);
  index.Insert(8, Slots{1});
  index.Erase(6, Slots{1});
  EXPECT_EQ(FindSlot(index, 8, {1}), 8);
  EXPECT_EQ(FindSlot(index, 7, {1}), 7);
}

TEST(ChannelIndex, Hash_DependsOnEverythingAndOnTheSecret) {
  const ChannelIndex index(1);
  const ChannelIndex other(2);
  const wire::Gid a = wire::Gid::FromV4(0xC0000201);
  const wire::Gid b = wire::Gid::FromV4(0xC0000202);
  std::set<uint32_t> hashes{index.Hash(a, b, 1), index.Hash(b, a, 1), index.Hash(a, b, 2),
                            index.Hash(a, a, 1), other.Hash(a, b, 1)};
  EXPECT_EQ(hashes.size(), 5u);
}

TEST(ChannelIndex, Thousand_TakeNoMoreThanFourBytesEach) {
  ChannelIndex index(1);
  for (uint32_t slot = 0; slot < 1024; ++slot) index.Insert(slot, Slots{1024});
  EXPECT_EQ(index.bytes(), 4096u);
}

TEST(ChannelIndex, RandomInsertAndErase_AsAList) {
  Random random(TestSeed(7));
  for (const uint32_t classes : {1u, 3u, 12u, 1000u}) {
    ChannelIndex index(3);
    std::set<uint32_t> model;
    for (uint32_t step = 0; step < 20000; ++step) {
      const auto slot = static_cast<uint32_t>(random.Below(60));
      if (model.insert(slot).second) {
        index.Insert(slot, Slots{classes});
      } else {
        index.Erase(slot, Slots{classes});
        model.erase(slot);
      }
      const auto asked = static_cast<uint32_t>(random.Below(60));
      ASSERT_EQ(FindSlot(index, asked, {classes}), model.count(asked) != 0 ? int64_t{asked} : -1)
          << "step " << step;
    }
  }
}

}  // namespace
}  // namespace rocegw::testing::channel_index
