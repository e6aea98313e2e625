// SPDX-License-Identifier: Apache-2.0
#include "gateway/base/containers/object_pool.h"

#include <gtest/gtest.h>

#include <vector>

#include "gateway/base/containers/growing_ring.h"

namespace rocegw {
namespace {

TEST(ObjectPool, Take_AfterGiveBack_IsTheSameObject) {
  ObjectPool<int> pool;
  std::unique_ptr<int> one = pool.Take();
  const int* const address = one.get();
  *one = 5;
  pool.GiveBack(std::move(one));
  EXPECT_EQ(pool.count(), 1u);
  one = pool.Take();
  EXPECT_EQ(one.get(), address);
  EXPECT_EQ(*one, 5) << "as it is";
  EXPECT_EQ(pool.count(), 0u);
}

TEST(ObjectPool, Take_TheLastGivenBackFirst) {
  ObjectPool<int> pool;
  std::unique_ptr<int> first = pool.Take();
  std::unique_ptr<int> second = pool.Take();
  const int* const last = second.get();
  pool.GiveBack(std::move(first));
  pool.GiveBack(std::move(second));
  EXPECT_EQ(pool.Take().get(), last);
}

TEST(ObjectPool, GiveBack_OfMany_KeepsAFew) {
  ObjectPool<int> pool;
  std::vector<std::unique_ptr<int>> taken;
  for (int i = 0; i < 100; ++i) taken.push_back(pool.Take());
  for (std::unique_ptr<int>& one : taken) pool.GiveBack(std::move(one));
  EXPECT_EQ(pool.count(), 64u);
}

TEST(GrowingRing, ThatEmpties_StaysInTheSameSlot) {
  GrowingRing<int> ring;
  ring.push_back(1);
  const int* const slot = &ring.front();
  for (int i = 0; i < 20; ++i) {
    ring.pop_front();
    ring.push_back(i);
    EXPECT_EQ(&ring.front(), slot);
    EXPECT_EQ(ring.front(), i);
  }
}

TEST(GrowingRing, PushFront_AtTheFirstSlot_KeepsOrderWhenItGrows) {
  GrowingRing<int> ring;
  for (int i = 0; i < 20; ++i) ring.push_front(i);
  ASSERT_EQ(ring.size(), 20u);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(ring[i], 19 - static_cast<int>(i));
  EXPECT_EQ(ring.back(), 0);
}

}  // namespace
}  // namespace rocegw
