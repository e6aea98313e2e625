// SPDX-License-Identifier: Apache-2.0
// Double-ended queue in one power-of-two array that doubles when full: allocation happens a few
// times in an object's life, not per element. The first kInline elements need none. Not thread
// safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace rocegw {

template <typename T, uint32_t kInline = 0>
class GrowingRing {
 public:
  bool empty() const { return head_ == tail_; }
  size_t size() const { return tail_ - head_; }
  // Returns how many elements fit without another allocation.
  size_t capacity() const { return capacity_; }
  T& front() { return At(head_); }
  const T& front() const { return At(head_); }
  T& back() { return At(tail_ - 1); }
  const T& back() const { return At(tail_ - 1); }
  // Returns the i-th element from the front.
  T& operator[](size_t i) { return At(static_cast<uint32_t>(head_ + i)); }
  const T& operator[](size_t i) const { return At(static_cast<uint32_t>(head_ + i)); }

  // Prefetches the first element, or the slot of the next one if the ring is empty.
  void Prefetch() const {
    if (capacity_ != 0) __builtin_prefetch(&At(head_));
  }

  void push_back(T value) { Extend() = std::move(value); }
  void push_front(T value) {
    if (size() == capacity_) Grow();
    At(--head_) = std::move(value);
  }
  // Appends an element to be written in place. Of a trivial type it has any value, else the
  // default.
  T& Extend() {
    if (size() == capacity_) Grow();
    return At(tail_++);
  }
  // Makes sure that `count` elements fit without another allocation.
  void Reserve(size_t count) {
    while (capacity_ < count) Grow();
  }
  void pop_front() { Leave(head_++); }
  void pop_back() { Leave(--tail_); }
  void clear() {
    while (!empty()) pop_front();
  }

 private:
  T& At(uint32_t index) { return const_cast<T&>(std::as_const(*this).At(index)); }
  const T& At(uint32_t index) const {
    const size_t place = index & (capacity_ - size_t{1});
    if constexpr (kInline != 0)
      if (slots_ == nullptr) return inline_[place];
    return slots_[place];
  }
  void Leave(uint32_t index) {
    if constexpr (!std::is_trivially_destructible_v<T>) At(index) = T();
    // A ring that becomes empty repeatedly keeps using the same cache lines.
    if (empty()) head_ = tail_ = 0;
  }
  void Grow() {
    const uint32_t capacity = capacity_ < 8 ? 8 : capacity_ * 2;
    auto bigger = std::make_unique<T[]>(capacity);
    const auto n = static_cast<uint32_t>(size());
    for (uint32_t i = 0; i < n; ++i) bigger[i] = std::move((*this)[i]);
    slots_ = std::move(bigger);
    capacity_ = capacity;
    head_ = 0;
    tail_ = n;
  }

  std::unique_ptr<T[]> slots_;   // nullptr: inline_ has the elements
  uint32_t capacity_ = kInline;  // 0 or a power of two
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  [[no_unique_address]] std::array<T, kInline> inline_;
};

}  // namespace rocegw
