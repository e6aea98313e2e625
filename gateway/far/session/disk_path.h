// SPDX-License-Identifier: Apache-2.0
// Disk copy of a session as its dispatcher uses it: room for writes, and the time that writes wait
// for it. The dispatcher's lock guards the state.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "gateway/far/disk/disk_copy.h"

namespace rocegw::far {

struct Operation;

// Write on its way to the disk copy. Shared by the copy's queue and the operation, which may end
// earlier when donors have its data.
struct DiskWrite {
  uint64_t offset = 0;  // in the space; within one slab
  uint64_t length = 0;
  uint32_t epoch = 0;            // disk epoch of the slab
  uint8_t* data = nullptr;       // in the queue's buffer
  Operation* waiting = nullptr;  // ends when the write has ended
  bool ended = false;
  bool good = false;  // the disk copy has all pages of the range; otherwise the slab knows which
};

class DiskPath {
 public:
  enum class Room : uint8_t {
    kGiven,  // the write has a place in the queue
    kFull,   // the write has to wait
    kDown,   // the disk copy accepts nothing
  };
  struct Waits {
    uint64_t count = 0;
    std::chrono::nanoseconds time{};
  };

  explicit DiskPath(std::unique_ptr<DiskCopy> copy) : copy_(std::move(copy)) {}

  DiskCopy& copy() { return *copy_; }
  Room Reserve(DiskWrite& write);
  Waits waits() const { return waits_; }

 private:
  const std::unique_ptr<DiskCopy> copy_;
  std::optional<DiskCopy::Clock::time_point> full_since_;
  Waits waits_;
};

}  // namespace rocegw::far
