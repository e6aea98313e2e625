// SPDX-License-Identifier: Apache-2.0
// Queues that all producers share, as a baseline for send rings; entries have the same 64 bytes.
// Producers call Push, which returns false if the queue is full. The consumer calls Take, which
// calls on_entry(const Entry&) for each entry taken and returns their number.
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

// Ring under a mutex. The consumer copies at most 64 entries each time it takes the lock.
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

// Two vectors under a mutex. The consumer takes all entries by a swap, so it holds the lock
// briefly.
class MutexSwap {
 public:
  explicit MutexSwap(size_t capacity) : capacity_(capacity) {
    // Touches the pages, so that the measurement has no page faults.
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

// As MutexSwap without polling: producers sleep while it is full, the consumer while it is empty.
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

// Lock-free ring for all producers (slots with sequence numbers; producers compete for the tail),
// in the form of a global doorbell queue. A producer that stops between taking and filling a slot
// stops all others.
class SharedRing {  // NOLINT(clang-analyzer-optin.performance.Padding): a cache line for each end
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
