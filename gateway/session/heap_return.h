// SPDX-License-Identifier: Apache-2.0
// Return of heap memory to the system after many or large objects were destroyed. The C library
// keeps memory below a block in use, which after a burst of programs is nearly all of it. Returning
// takes about 60 ms per GiB and locks the heap, so it happens rarely and only if much is free.
// Control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "gateway/loop/control_loop.h"

namespace rocegw::session {

class HeapReturn {
 public:
  // Fewer destroyed objects do not trigger a check.
  static constexpr uint64_t kManyObjects = 4096;
  // Memory freed since a return without which another one is not worth its time.
  static constexpr size_t kWorthBytes = size_t{8} << 20;
  // Free memory kept for the next objects.
  static constexpr size_t kKeptBytes = size_t{32} << 20;

  // `charged` returns the heap bytes that objects are charged for now.
  HeapReturn(ControlLoop& loop, std::function<uint64_t()> charged)
      : loop_(loop), charged_(std::move(charged)) {}
  ~HeapReturn() { loop_.Cancel(timer_); }
  HeapReturn(const HeapReturn&) = delete;
  HeapReturn& operator=(const HeapReturn&) = delete;

  // Notes that so many objects were destroyed, here or soon on a worker. The last one may still
  // hold its charge.
  void Destroyed(uint64_t objects);
  // Returns how often memory was returned.
  uint64_t count() const { return count_; }

 private:
  void Look();

  ControlLoop& loop_;
  const std::function<uint64_t()> charged_;
  ControlLoop::TimerId timer_ = 0;
  TimePoint looked_at_;
  uint64_t destroyed_ = 0;
  uint64_t most_charged_ = 0;  // maximum since the last check, sampled when objects were destroyed
  uint64_t count_ = 0;
  size_t free_then_ = 0;  // free bytes at the last return
  bool looks_again_ =
      false;  // the next look follows a return, and nothing much was destroyed since
};

}  // namespace rocegw::session
