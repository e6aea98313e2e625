// SPDX-License-Identifier: Apache-2.0
// Work in progress of a session: requests of callers, operations made of their parts, and the
// transfers of an operation, one for each donor it concerns.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "gateway/far/link/connection.h"
#include "gateway/far/request/merge_queue.h"
#include "gateway/far/session/api/rocegw_memory.h"
#include "gateway/far/session/disk_path.h"
#include "gateway/far/session/registered_memory.h"
#include "gateway/far/session/settings.h"

namespace rocegw::far {

// Buffer of a write as requests take it: a write only reads its buffer, and the request path has
// one kind of part for both directions.
inline uint8_t* WrittenBytes(const void* buffer) {
  return static_cast<uint8_t*>(const_cast<void*>(buffer));
}

// Owned by its parts; the last one that completes calls `done` and deletes it.
struct Request {
  std::atomic<uint32_t> parts_left{0};
  std::atomic<int> status{0};  // 0 or a negative errno
  rocegw_memory_done done = nullptr;
  void* argument = nullptr;
  uint64_t length = 0;
  // Buffer that is registered for this request; without, one that is not staged is in the pool.
  RegisteredMemory::Registration registration;
};

struct Operation;

// Transfer of an operation to or from one donor; an element of the donor's list of transfers in
// flight.
struct Transfer : Completable {
  Operation* operation = nullptr;
  uint32_t donor = 0;
  uint64_t address = 0;  // at the donor
  uint32_t key = 0;
  Clock::time_point sent;
  Transfer* previous = nullptr;
  Transfer* next = nullptr;
};

// Copy of a stretch of a slab to a new replica, or to a disk copy that lacks it: a read, then a
// write of the same bytes.
struct Copy {
  static constexpr uint64_t kDisk = 0;

  uint64_t replica = kDisk;  // serial number of the slab's replica that gets it; or kDisk
  std::function<void(bool copied)> done;
};

// Owned by its transfers; the last one that completes finishes and deletes it.
struct Operation {
  Plan plan;
  Direction direction = Direction::kRead;
  uint32_t slab = 0;
  uint32_t generation = 0;  // generation of the slab when the operation was sent
  uint64_t staging = 0;     // offset of its stretch of the staging buffer, if it has one
  uint64_t staged_bytes = 0;
  uint32_t pending = 0;    // transfers
  uint32_t succeeded = 0;  // transfers
  uint32_t transfer_count = 0;
  std::array<Transfer, kMostCopies> transfers;
  Copy* copy = nullptr;             // owned; the plan's one part then has no request and no buffer
  bool live = false;                // a transfer goes to a live replica
  bool again = false;               // its transfers are repeated: a suspended donor has failed one
  std::shared_ptr<DiskWrite> disk;  // the same write to the disk copy, if there is one
};

}  // namespace rocegw::far
