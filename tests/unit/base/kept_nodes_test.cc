// SPDX-License-Identifier: Apache-2.0
#include "gateway/base/containers/kept_nodes.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <unordered_map>

namespace rocegw {
namespace {

using Map = std::map<int, int>;

TEST(KeptNodes, Refill_MakesAsManyAsAreWantedInSteps) {
  Map map;
  KeptNodes<Map> kept;
  EXPECT_FALSE(kept.Refill(map, 4));
  kept.SetWanted(6);
  EXPECT_TRUE(kept.Refill(map, 4));
  EXPECT_EQ(kept.count(), 4u);
  EXPECT_TRUE(kept.Refill(map, 4));
  EXPECT_EQ(kept.count(), 6u);
  EXPECT_FALSE(kept.Refill(map, 4));
  EXPECT_TRUE(map.empty());
}

TEST(KeptNodes, InsertAndErase_TakeAndGiveBackAndKeepNoMoreThanWanted) {
  Map map;
  KeptNodes<Map> kept;
  kept.SetWanted(2);
  (void)kept.Refill(map, 2);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(kept.Insert(map, i, 10 * i)->second, 10 * i);
  EXPECT_EQ(kept.count(), 0u);
  EXPECT_EQ(map, (Map{{0, 0}, {1, 10}, {2, 20}, {3, 30}, {4, 40}}));
  for (int i = 0; i < 5; ++i) kept.Erase(map, map.find(i));
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(kept.count(), 2u);
  kept.SetWanted(1);
  EXPECT_EQ(kept.count(), 1u);
  EXPECT_EQ(kept.Insert(map, 7, 8)->first, 7);
}

TEST(KeptNodes, OneNode_StaysInUse) {
  std::multimap<int, int> map;
  KeptNodes<std::multimap<int, int>> kept;
  kept.SetWanted(1);
  const void* const first = &*kept.Insert(map, 1, 1);
  kept.Erase(map, map.begin());
  EXPECT_EQ(&*kept.Insert(map, 2, 2), first);
  kept.Insert(map, 2, 3);
  EXPECT_EQ(map.count(2), 2u);
}

TEST(KeptNodes, WhatAnElementHolds_GoesWithIt) {
  std::map<int, std::shared_ptr<int>> map;
  KeptNodes<std::map<int, std::shared_ptr<int>>> kept;
  kept.SetWanted(1);
  const auto held = std::make_shared<int>(1);
  kept.Insert(map, 1, held);
  EXPECT_EQ(held.use_count(), 2);
  kept.Erase(map, map.begin());
  EXPECT_EQ(held.use_count(), 1);
}

TEST(KeptNodes, SetsAndTablesOfBuckets) {
  std::set<int> set;
  KeptNodes<std::set<int>> of_set;
  of_set.SetWanted(1);
  (void)of_set.Refill(set, 1);
  EXPECT_EQ(*of_set.Insert(set, 5), 5);
  of_set.Erase(set, set.begin());
  EXPECT_EQ(of_set.count(), 1u);

  std::unordered_map<int, int> table;
  KeptNodes<std::unordered_map<int, int>> of_table;
  of_table.SetWanted(1000);
  while (of_table.Refill(table, 100)) {
  }
  const size_t buckets = table.bucket_count();
  for (int i = 0; i < 1000; ++i) of_table.Insert(table, i, i);
  EXPECT_EQ(table.bucket_count(), buckets) << "there was room";
  EXPECT_EQ(of_table.count(), 0u);
}

}  // namespace
}  // namespace rocegw
