// SPDX-License-Identifier: Apache-2.0
// Interval tree against a list that is searched from end to end: the same overlaps in the order of
// their starts, after random insertions and removals. The depth stays logarithmic when objects come
// in the order of their addresses.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "gateway/client/memory/interval_tree.h"
#include "tests/support/random.h"

namespace rocegw::testing {
namespace {

using client::Interval;
using client::IntervalTree;

struct Object : Interval {};
using Objects = std::vector<std::unique_ptr<Object>>;

std::unique_ptr<Object> Make(uint64_t start, uint64_t end) {
  auto object = std::make_unique<Object>();
  object->start = start;
  object->end = end;
  return object;
}

std::vector<const Object*> Overlaps(const IntervalTree<Object>& tree, uint64_t start,
                                    uint64_t end) {
  std::vector<const Object*> found;
  tree.FindOverlap(start, end, [&](const Object& object) {
    found.push_back(&object);
    return false;
  });
  return found;
}

std::vector<const Object*> OverlapsOf(const Objects& objects, uint64_t start, uint64_t end) {
  std::vector<const Object*> found;
  for (const auto& object : objects)
    if (object->start < end && start < object->end) found.push_back(object.get());
  std::sort(found.begin(), found.end(), [](const Object* a, const Object* b) {
    return a->start != b->start ? a->start < b->start : a < b;
  });
  return found;
}

size_t Depth(const Interval* node) {
  return node == nullptr ? 0 : 1 + std::max(Depth(node->lower), Depth(node->higher));
}

TEST(IntervalTreeProperty, RandomObjects_SameOverlapsAsAList) {
  for (uint64_t round = 0; round < 100; ++round) {
    const uint64_t seed = 9000 + round;
    Random random(round == 0 ? TestSeed(seed) : seed);
    IntervalTree<Object> tree;
    Objects objects;
    for (int step = 0; step < 300; ++step) {
      const uint64_t start = random.Below(200);
      const uint64_t end = start + random.Below(random.Below(4) == 0 ? 200 : 10);
      if (objects.empty() || random.Below(3) != 0) {
        objects.push_back(Make(start, end));
        tree.Insert(objects.back().get());
      } else {
        const size_t which = random.Below(objects.size());
        tree.Remove(objects[which].get());
        objects.erase(objects.begin() + static_cast<ptrdiff_t>(which));
      }
      ASSERT_EQ(Overlaps(tree, start, end), OverlapsOf(objects, start, end)) << "seed " << seed;
      ASSERT_EQ(tree.empty(), objects.empty());
    }
    size_t count = 0;
    tree.ForEach([&](const Object&) { ++count; });
    EXPECT_EQ(count, objects.size()) << "seed " << seed;
  }
}

TEST(IntervalTreeProperty, FirstThatTheVisitorTakes_EndsTheSearch) {
  IntervalTree<Object> tree;
  Objects objects;
  for (uint64_t i = 0; i < 100; ++i) {
    objects.push_back(Make(i * 10, i * 10 + 20));
    tree.Insert(objects.back().get());
  }
  int asked = 0;
  const Object* const found = tree.FindOverlap(500, 600, [&](const Object& object) {
    ++asked;
    return object.start >= 510;
  });
  EXPECT_EQ(found, objects[51].get());
  EXPECT_EQ(asked, 3);
}

TEST(IntervalTreeProperty, RisingAddresses_DepthIsLogarithmic) {
  constexpr uint64_t kObjects = 100000;
  IntervalTree<Object> tree;
  Objects objects;
  for (uint64_t i = 0; i < kObjects; ++i) {
    objects.push_back(Make(i * 4096, (i + 1) * 4096));
    tree.Insert(objects.back().get());
  }
  const Interval* root = objects.front().get();
  for (const auto& object : objects)
    if (object->priority > root->priority) root = object.get();
  EXPECT_LE(Depth(root), 60u) << "17 is the least";
}

}  // namespace
}  // namespace rocegw::testing
