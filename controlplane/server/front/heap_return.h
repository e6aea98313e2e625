// SPDX-License-Identifier: Apache-2.0
// Returns unused heap to the system after many connections of strangers have ended. The C library
// keeps the memory that gRPC took for their streams; returning it locks the heap for about 60 ms
// per GiB.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace rocegw::server {

class HeapReturn {
 public:
  using Clock = std::chrono::steady_clock;

  // All functions: any thread.
  void CountEnded();
  // Makes the check whose time has come. Waits for the heap's locks.
  void Look();

  // Returns how often heap was returned.
  uint64_t returns() const { return returns_.load(); }

 private:
  std::mutex mutex_;    // guards the fields below, but not the heap
  uint64_t ended_ = 0;  // ended strangers since a check became due
  int looks_ = 0;       // checks to come
  Clock::time_point due_;
  std::atomic<uint64_t> returns_{0};
};

}  // namespace rocegw::server
