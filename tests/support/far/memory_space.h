// SPDX-License-Identifier: Apache-2.0
// Space of files in memory of the test. It begins with bytes that are not zero, transfers complete
// when the test says so or at once, and pages can be lost as those of donors are.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <vector>

#include "gateway/far/files/space.h"

namespace rocegw::far {

class MemorySpace final : public Space {
 public:
  static constexpr uint64_t kPage = 4096;

  explicit MemorySpace(uint64_t bytes) : bytes_(bytes, 0xa5) {}

  int Submit(Direction direction, uint64_t offset, uint8_t* buffer, uint64_t length, Done done,
             void* argument) override {
    {
      const std::lock_guard lock(mutex_);
      if (offset + length > bytes_.size()) return -EINVAL;
      if (hold_) {
        held_.push_back({direction, offset, buffer, length, done, argument});
        return 0;
      }
    }
    done(argument, Execute({direction, offset, buffer, length, done, argument}));
    return 0;
  }
  uint8_t* Allocate(uint64_t bytes) override {
    // Every other buffer comes from the pool.
    pooled_ = !pooled_;
    return pooled_ ? static_cast<uint8_t*>(std::malloc(bytes)) : nullptr;
  }
  void Free(uint8_t* memory) override { std::free(memory); }
  void Flush(Done done, void* argument) override { done(argument, flush_status_); }
  void FailFlushes() { flush_status_ = -EIO; }

  // Transfers wait until CompleteHeld.
  void Hold() {
    const std::lock_guard lock(mutex_);
    hold_ = true;
  }
  size_t held() {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }
  // Completes the transfers that wait, the last one first.
  void CompleteHeld() {
    std::deque<Transfer> transfers;
    {
      const std::lock_guard lock(mutex_);
      hold_ = false;
      transfers.swap(held_);
    }
    for (auto each = transfers.rbegin(); each != transfers.rend(); ++each) {
      each->done(each->argument, Execute(*each));
    }
  }
  // The page fails until it is written whole.
  void LosePage(uint64_t page) { lost_.insert(page); }
  uint64_t transfers() const { return transfers_; }

 private:
  struct Transfer {
    Direction direction;
    uint64_t offset;
    uint8_t* buffer;
    uint64_t length;
    Done done;
    void* argument;
  };

  int Execute(const Transfer& transfer) {
    const std::lock_guard lock(mutex_);
    transfers_++;
    const uint64_t end = transfer.offset + transfer.length;
    for (uint64_t page = transfer.offset / kPage; page * kPage < end; page++) {
      const bool whole = transfer.offset <= page * kPage && (page + 1) * kPage <= end;
      if (transfer.direction == Direction::kWrite && whole) continue;
      if (lost_.contains(page)) return -EIO;
    }
    if (transfer.direction == Direction::kRead) {
      std::memcpy(transfer.buffer, &bytes_[transfer.offset], transfer.length);
      return 0;
    }
    std::memcpy(&bytes_[transfer.offset], transfer.buffer, transfer.length);
    for (uint64_t page = transfer.offset / kPage; page * kPage < end; page++) lost_.erase(page);
    return 0;
  }

  std::mutex mutex_;
  std::vector<uint8_t> bytes_;
  std::set<uint64_t> lost_;
  std::deque<Transfer> held_;
  bool hold_ = false;
  bool pooled_ = false;
  int flush_status_ = 0;
  uint64_t transfers_ = 0;
};

}  // namespace rocegw::far
