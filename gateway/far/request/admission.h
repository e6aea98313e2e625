// SPDX-License-Identifier: Apache-2.0
// Admission control at the merge queues (RDMAbox IV-A): a window of bytes that may be in flight at
// once. Requests that are not admitted wait in their merge queue, where they may be merged. Not
// thread-safe.
#pragma once

#include <cstdint>

namespace rocegw::far {

class Admission {
 public:
  // Returns the window in bytes that holds now; `in_flight` are the bytes in flight.
  using WindowHook = uint64_t (*)(void* argument, uint64_t in_flight);

  // `window` in bytes; 0 admits everything.
  explicit Admission(uint64_t window) : window_(window) {}

  // Replaces the fixed window. nullptr restores it.
  void SetHook(WindowHook hook, void* argument) {
    hook_ = hook;
    argument_ = argument;
  }

  // Whether the window has room for the bytes. A refusal is counted.
  bool HasRoom(uint64_t bytes);
  // Adds the bytes to those in flight if the window has room for them. A request larger than the
  // window is admitted when nothing else is in flight.
  bool Admit(uint64_t bytes);
  void Release(uint64_t bytes) { in_flight_ -= bytes; }

  uint64_t in_flight() const { return in_flight_; }
  uint64_t peak() const { return peak_; }
  uint64_t refusals() const { return refusals_; }

 private:
  const uint64_t window_;
  WindowHook hook_ = nullptr;
  void* argument_ = nullptr;
  uint64_t in_flight_ = 0;
  uint64_t peak_ = 0;
  uint64_t refusals_ = 0;
};

}  // namespace rocegw::far
