// SPDX-License-Identifier: Apache-2.0
// What the send rings are measured against: queues that all producers share, with entries of the
// same 64 bytes. Push is for producers, false when the queue is full; Take is for the one consumer
// and calls on_entry(const Entry&) for what it took, returns how many.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace rocegw::bench {

struct Entry {
  uint64_t id;
  uint64_t rest[7];
};
static_assert(sizeof(Entry) == 64);

// A ring under a mutex. The consumer copies up to 64 entries out for each time it takes the lock.
class MutexRing {
 public:
  explicit MutexRing(size_t capacity) : entries_(capacity) {}

  bool Push(const Entry& entry) {
    const std::lock_guard guard(mutex_);
    if (tail_ - head_ == entries_.size()) return false;
    entries_[tail_++ & (entries_.size() - 1)] = entry;
    return true;
  }
  template <typename F>
  uint32_t Take(F&& on_entry) {
    Entry batch[64];
    uint32_t count = 0;
    {
      const std::lock_guard guard(mutex_);
      while (count < 64 && head_ != tail_) batch[count++] = entries_[head_++ & Mask()];
    }
    for (uint32_t i = 0; i < count; ++i) on_entry(batch[i]);
    return count;
  }

 private:
  size_t Mask() const { return entries_.size() - 1; }
  std::mutex mutex_;
  std::vector<Entry> entries_;
  size_t head_ = 0;
  size_t tail_ = 0;
};

// Two vectors under a mutex: the consumer takes everything by a swap, so it holds the lock for a
// moment only.
class MutexSwap {
 public:
  explicit MutexSwap(size_t capacity) : capacity_(capacity) {
    // Touched once, so that no page fault falls into the measurement.
    filling_.resize(capacity);
    emptying_.resize(capacity);
    filling_.clear();
    emptying_.clear();
  }

  bool Push(const Entry& entry) {
    const std::lock_guard guard(mutex_);
    if (filling_.size() == capacity_) return false;
    filling_.push_back(entry);
    return true;
  }
  template <typename F>
  uint32_t Take(F&& on_entry) {
    emptying_.clear();
    {
      const std::lock_guard guard(mutex_);
      filling_.swap(emptying_);
    }
    for (const Entry& entry : emptying_) on_entry(entry);
    return static_cast<uint32_t>(emptying_.size());
  }

 private:
  size_t capacity_;
  std::mutex mutex_;
  std::vector<Entry> filling_;
  std::vector<Entry> emptying_;
};

// As MutexSwap, but nobody polls: producers sleep while it is full, the consumer while it is empty.
class MutexWaiting {
 public:
  explicit MutexWaiting(size_t capacity) : capacity_(capacity) {
    filling_.resize(capacity);
    emptying_.resize(capacity);
    filling_.clear();
    emptying_.clear();
  }

  bool Push(const Entry& entry) {
    bool first;
    {
      std::unique_lock lock(mutex_);
      not_full_.wait(lock, [&] { return filling_.size() < capacity_; });
      first = filling_.empty();
      filling_.push_back(entry);
    }
    if (first) not_empty_.notify_one();
    return true;
  }
  template <typename F>
  uint32_t Take(F&& on_entry) {
    emptying_.clear();
    bool was_full;
    {
      std::unique_lock lock(mutex_);
      not_empty_.wait(lock, [&] { return !filling_.empty(); });
      was_full = filling_.size() == capacity_;
      filling_.swap(emptying_);
    }
    if (was_full) not_full_.notify_all();
    for (const Entry& entry : emptying_) on_entry(entry);
    return static_cast<uint32_t>(emptying_.size());
  }

 private:
  size_t capacity_;
  std::mutex mutex_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  std::vector<Entry> filling_;
  std::vector<Entry> emptying_;
};

// One lock-free ring for all (slots with sequence numbers, producers compete for the tail): the
// shape of a global doorbell queue. A producer that stops between taking a slot and filling it
// stops everybody.
class SharedRing {  // NOLINT(clang-analyzer-optin.performance.Padding): a line for each end
 public:
  explicit SharedRing(size_t capacity)
      : mask_(capacity - 1), slots_(std::make_unique<Slot[]>(capacity)) {
    for (size_t i = 0; i < capacity; ++i) slots_[i].sequence.store(i, std::memory_order_relaxed);
  }

  bool Push(const Entry& entry) {
    uint64_t tail = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[tail & mask_];
      const auto lead = static_cast<int64_t>(slot.sequence.load(std::memory_order_acquire) - tail);
      if (lead < 0) return false;
      if (lead > 0) {
        tail = tail_.load(std::memory_order_relaxed);
      } else if (tail_.compare_exchange_weak(tail, tail + 1, std::memory_order_relaxed)) {
        slot.entry = entry;
        slot.sequence.store(tail + 1, std::memory_order_release);
        return true;
      }
    }
  }
  template <typename F>
  uint32_t Take(F&& on_entry) {
    uint32_t count = 0;
    for (; count < 64; ++count, ++head_) {
      Slot& slot = slots_[head_ & mask_];
      if (slot.sequence.load(std::memory_order_acquire) != head_ + 1) break;
      const Entry entry = slot.entry;
      slot.sequence.store(head_ + mask_ + 1, std::memory_order_release);
      on_entry(entry);
    }
    return count;
  }

 private:
  struct alignas(64) Slot {
    Entry entry{};
    std::atomic<uint64_t> sequence{0};
  };
  uint64_t mask_;
  std::unique_ptr<Slot[]> slots_;
  alignas(64) std::atomic<uint64_t> tail_{0};
  alignas(64) uint64_t head_ = 0;
};

}  // namespace rocegw::bench
