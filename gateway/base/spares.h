// SPDX-License-Identifier: Apache-2.0
// Objects of one kind of which many need one for a moment each: what is given back is the next to
// be taken, as it is, so that few are ever made and those in use lie in the processor's cache.
// Whoever gives one back has emptied it; what it has allocated it keeps. Holds a few; belongs to
// one thread. (shelf.h destroys what is given back and keeps its memory.)
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

namespace rocegw {

template <typename T>
class Spares {
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
  std::array<std::unique_ptr<T>, 16> kept_;
};

}  // namespace rocegw
