// SPDX-License-Identifier: Apache-2.0
// Object pool for objects that many users need for a moment each. A returned object is the next to
// be taken, so few exist and they stay in the processor's cache. The user empties the object before
// it returns it; the object keeps its allocations. Holds as many as the users of one burst of
// packets need; belongs to one thread. (shelf.h destroys returned objects and keeps their memory
// only.)
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

namespace rocegw {

template <typename T>
class ObjectPool {
 public:
  std::unique_ptr<T> Take() {
    return count_ == 0 ? std::make_unique<T>() : std::move(kept_[--count_]);
  }
  void GiveBack(std::unique_ptr<T> one) {
    if (count_ != kept_.size()) kept_[count_++] = std::move(one);
  }
  size_t count() const { return count_; }

 private:
  size_t count_ = 0;
  std::array<std::unique_ptr<T>, 64> kept_;
};

}  // namespace rocegw
