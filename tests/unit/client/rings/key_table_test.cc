// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/rings/key_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace rocegw::client {
namespace {

struct Table : KeyTable {
  ~Table() { Clear(); }
};

TEST(KeyTable, Find_EmptyTable_FindsNothing) {
  const Table table{};
  RegisteredRange range;
  EXPECT_FALSE(table.Find(0, &range));
}

TEST(KeyTable, Find_KeyZero_IsAKeyLikeOthers) {
  Table table{};
  ASSERT_EQ(0, table.Insert(0, {10, 20, 30, 40, 50}));
  RegisteredRange range;
  ASSERT_TRUE(table.Find(0, &range));
  EXPECT_EQ(30u, range.address);
}

TEST(KeyTable, Locate_EdgesOfTheRange) {
  Table table{};
  ASSERT_EQ(0, table.Insert(7, {0x1000, 0x100, 0x9000, 3, 1}));
  EXPECT_EQ(reinterpret_cast<uint8_t*>(0x9000), table.Locate(7, 3, 0x1000, 0x100, 1));
  EXPECT_EQ(reinterpret_cast<uint8_t*>(0x90ff), table.Locate(7, 3, 0x10ff, 1, 0));
  EXPECT_EQ(nullptr, table.Locate(7, 3, 0x10ff, 2, 0));
  EXPECT_EQ(nullptr, table.Locate(7, 3, 0xfff, 1, 0));
  EXPECT_EQ(nullptr, table.Locate(7, 3, 0x1101, 0, 0));
  EXPECT_EQ(nullptr, table.Locate(7, 4, 0x1000, 1, 0));
  EXPECT_EQ(nullptr, table.Locate(7, 3, 0x1000, 1, 2));
  EXPECT_EQ(nullptr, table.Locate(8, 3, 0x1000, 1, 0));
  EXPECT_NE(nullptr, table.Locate(7, 3, 0x1000, 1, 1, 2));
  EXPECT_EQ(nullptr, table.Locate(7, 3, 0x1000, 1, 0, 1));
}

TEST(KeyTable, Replace_TheKeyStandsForTheOtherRange) {
  Table table{};
  ASSERT_EQ(0, table.Insert(7, {0x1000, 0x100, 0x9000, 3, 1}));
  ASSERT_EQ(0, table.Insert(8, {0x1000, 0x100, 0x9000, 3, 1}));
  table.Replace(7, {0x2000, 0x80, 0xa000, 4, 2});
  EXPECT_EQ(nullptr, table.Locate(7, 3, 0x1000, 1, 0));
  EXPECT_EQ(reinterpret_cast<uint8_t*>(0xa000), table.Locate(7, 4, 0x2000, 0x80, 2));
  EXPECT_NE(nullptr, table.Locate(8, 3, 0x1000, 1, 0)) << "another one";
  table.Remove(7);
  RegisteredRange range;
  EXPECT_FALSE(table.Find(7, &range));
}

TEST(KeyTable, InsertRemove_RandomHistory_MatchesAMap) {
  const unsigned seed = 4711;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Table table{};
  std::map<uint32_t, uint64_t> model;
  for (int step = 0; step < 50000; ++step) {
    const uint32_t key = random() % 400 * 0x100;
    if (model.erase(key) != 0) {
      table.Remove(key);
    } else {
      model[key] = random();
      ASSERT_EQ(0, table.Insert(key, {model[key], 1, 2, 3, 4}));
    }
    const uint32_t probe = random() % 400 * 0x100;
    RegisteredRange range;
    const auto known = model.find(probe);
    ASSERT_EQ(known != model.end(), table.Find(probe, &range)) << step;
    if (known != model.end()) {
      ASSERT_EQ(known->second, range.iova);
    }
  }
}

// A reader must never see a mixture of two entries, also while the table grows.
TEST(KeyTable, Find_DuringChanges_NeverSeesHalfAnEntry) {
  Table table{};
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (uint32_t round = 1; round <= 300; ++round) {
      for (uint32_t key = 1; key <= 40; ++key) {
        const uint64_t value = uint64_t{round} << 32 | key;
        table.Insert(key, {value, value, value, key, key});
      }
      for (uint32_t key = 1; key <= 40; ++key) table.Remove(key);
    }
    stop = true;
  });
  uint64_t found = 0;
  while (!stop) {
    for (uint32_t key = 1; key <= 40; ++key) {
      RegisteredRange range;
      if (!table.Find(key, &range)) continue;
      ++found;
      ASSERT_EQ(range.iova, range.length);
      ASSERT_EQ(range.iova, range.address);
      ASSERT_EQ(key, range.pd);
      ASSERT_EQ(key, static_cast<uint32_t>(range.iova));
    }
  }
  writer.join();
  RecordProperty("found", static_cast<int>(found));
}

}  // namespace
}  // namespace rocegw::client
