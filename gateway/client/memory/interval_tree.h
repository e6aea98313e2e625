// SPDX-License-Identifier: Apache-2.0
// Set of objects that each cover a range of addresses, found by overlap in time proportional to the
// logarithm of their number. Intrusive: an object holds its links, so nothing is allocated, and an
// object is in one tree at most. Randomised (a treap), so no order of insertion makes it slow. Not
// thread-safe; the owner of the tree locks.
#pragma once

#include <cstdint>

namespace rocegw::client {

// Range of addresses [start, end) and the links of an object in a tree. The range must not change
// while the object is in the tree.
struct Interval {
  uint64_t start = 0;
  uint64_t end = 0;
  Interval* lower = nullptr;
  Interval* higher = nullptr;
  uint64_t last_end = 0;  // largest `end` in this subtree
  uint32_t priority = 0;
};

// `T` derives from Interval.
template <typename T>
class IntervalTree {
 public:
  bool empty() const { return root_ == nullptr; }

  void Insert(T* object) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 17;
    random_ ^= random_ << 5;
    object->priority = random_;
    object->lower = nullptr;
    object->higher = nullptr;
    object->last_end = object->end;
    Interval* before;
    Interval* after;
    Split(root_, object, &before, &after);
    root_ = Join(Join(before, object), after);
  }
  // The object must be in the tree.
  void Remove(T* object) { RemoveFrom(&root_, object); }

  // Calls visit(T&) for each object that overlaps [start, end), in order of `start`, until a call
  // returns true. Returns that object, or nullptr. `visit` must not change the tree.
  template <typename Visit>
  T* FindOverlap(uint64_t start, uint64_t end, Visit visit) const {
    return static_cast<T*>(Find(root_, start, end, visit));
  }
  // Calls visit(T&) for each object. `visit` must not change the tree.
  template <typename Visit>
  void ForEach(Visit visit) const {
    Walk(root_, visit);
  }

 private:
  static bool Less(const Interval* a, const Interval* b) {
    return a->start != b->start ? a->start < b->start : a < b;
  }
  static void Include(Interval* node, const Interval* child) {
    if (child != nullptr && child->last_end > node->last_end) node->last_end = child->last_end;
  }
  static void Update(Interval* node) {
    node->last_end = node->end;
    Include(node, node->lower);
    Include(node, node->higher);
  }
  // Splits a subtree into the nodes before `at` and those after it.
  static void Split(Interval* node, const Interval* at, Interval** before, Interval** after) {
    if (node == nullptr) {
      *before = nullptr;
      *after = nullptr;
      return;
    }
    if (Less(node, at)) {
      *before = node;
      Split(node->higher, at, &node->higher, after);
    } else {
      *after = node;
      Split(node->lower, at, before, &node->lower);
    }
    Update(node);
  }
  // Joins two subtrees; all nodes of `a` are before those of `b`.
  static Interval* Join(Interval* a, Interval* b) {
    if (a == nullptr) return b;
    if (b == nullptr) return a;
    if (a->priority > b->priority) {
      a->higher = Join(a->higher, b);
      Update(a);
      return a;
    }
    b->lower = Join(a, b->lower);
    Update(b);
    return b;
  }
  static void RemoveFrom(Interval** link, const Interval* object) {
    Interval* const node = *link;
    if (node == nullptr) return;
    if (node == object) {
      *link = Join(node->lower, node->higher);
      return;
    }
    RemoveFrom(Less(object, node) ? &node->lower : &node->higher, object);
    Update(node);
  }
  template <typename Visit>
  static Interval* Find(Interval* node, uint64_t start, uint64_t end, Visit& visit) {
    if (node == nullptr || node->last_end <= start) return nullptr;
    Interval* const found = Find(node->lower, start, end, visit);
    if (found != nullptr) return found;
    if (node->start >= end) return nullptr;
    if (start < node->end && visit(*static_cast<T*>(node))) return node;
    return Find(node->higher, start, end, visit);
  }
  template <typename Visit>
  static void Walk(Interval* node, Visit& visit) {
    if (node == nullptr) return;
    Walk(node->lower, visit);
    Interval* const higher = node->higher;
    visit(*static_cast<T*>(node));
    Walk(higher, visit);
  }

  Interval* root_ = nullptr;
  uint32_t random_ = 0x9E3779B9;
};

}  // namespace rocegw::client
