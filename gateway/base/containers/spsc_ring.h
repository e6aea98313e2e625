// SPDX-License-Identifier: Apache-2.0
// Bounded single-producer single-consumer ring between two threads of this process. Values are
// moved; nothing is allocated after construction. Capacity is rounded up to a power of two. One
// thread calls Push, one other thread calls Pop.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace rocegw {

// The padding keeps the fields that each side writes on separate cache lines.
template <typename T>
class SpscRing {  // NOLINT(clang-analyzer-optin.performance.Padding)
 public:
  explicit SpscRing(size_t capacity)
      : mask_(std::bit_ceil(capacity) - 1), slots_(std::make_unique<T[]>(mask_ + 1)) {}

  // Returns false, with the value untouched, if the ring is full.
  bool Push(T&& value) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - cached_head_ > mask_) {
      cached_head_ = head_.load(std::memory_order_acquire);
      if (tail - cached_head_ > mask_) return false;
    }
    slots_[tail & mask_] = std::move(value);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  bool Pop(T& out) {
    const size_t head = head_.load(std::memory_order_relaxed);
    if (head == cached_tail_) {
      cached_tail_ = tail_.load(std::memory_order_acquire);
      if (head == cached_tail_) return false;
    }
    out = std::move(slots_[head & mask_]);
    slots_[head & mask_] = T();
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  // Either side may call it; exact for the consumer only.
  bool empty() const {
    return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_acquire);
  }
  size_t capacity() const { return mask_ + 1; }

 private:
  const size_t mask_;
  std::unique_ptr<T[]> slots_;
  alignas(64) std::atomic<size_t> tail_{0};
  size_t cached_head_ = 0;
  alignas(64) std::atomic<size_t> head_{0};
  size_t cached_tail_ = 0;
};

}  // namespace rocegw
