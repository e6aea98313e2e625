// SPDX-License-Identifier: Apache-2.0
// Double-ended queue in one power-of-two array that doubles when full: allocation happens a few
// times in an object's life, not per element. Not thread safe.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace rocegw {

template <typename T>
class GrowingRing {
 public:
  bool empty() const { return head_ == tail_; }
  size_t size() const { return tail_ - head_; }
  T& front() { return slots_[head_ & Mask()]; }
  const T& front() const { return slots_[head_ & Mask()]; }
  T& back() { return slots_[(tail_ - 1) & Mask()]; }
  const T& back() const { return slots_[(tail_ - 1) & Mask()]; }
  // i-th from the front.
  T& operator[](size_t i) { return slots_[(head_ + i) & Mask()]; }
  const T& operator[](size_t i) const { return slots_[(head_ + i) & Mask()]; }

  void push_back(T value) { Extend() = std::move(value); }
  void push_front(T value) {
    if (tail_ - head_ == slots_.size()) Grow();
    slots_[--head_ & Mask()] = std::move(value);
  }
  // A new last element, to be written in place: of a trivial type it holds anything, else nothing.
  T& Extend() {
    if (tail_ - head_ == slots_.size()) Grow();
    return slots_[tail_++ & Mask()];
  }
  // So many fit without another allocation.
  void Reserve(size_t count) {
    while (slots_.size() < count) Grow();
  }
  void pop_front() { Leave(head_++); }
  void pop_back() { Leave(--tail_); }
  void clear() {
    while (!empty()) pop_front();
  }

 private:
  size_t Mask() const { return slots_.size() - 1; }
  void Leave(size_t index) {
    if constexpr (!std::is_trivially_destructible_v<T>) slots_[index & Mask()] = T();
  }
  void Grow() {
    std::vector<T> bigger(slots_.empty() ? 8 : slots_.size() * 2);
    const size_t n = size();
    for (size_t i = 0; i < n; ++i) bigger[i] = std::move((*this)[i]);
    slots_ = std::move(bigger);
    head_ = 0;
    tail_ = n;
  }

  std::vector<T> slots_;
  size_t head_ = 0;
  size_t tail_ = 0;
};

}  // namespace rocegw
