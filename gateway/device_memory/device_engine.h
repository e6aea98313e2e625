// SPDX-License-Identifier: Apache-2.0
// Copies between the gateway's memory and a GPU for one session: a context of its own, a stream, an
// event, and pinned staging memory. Copies of one call enter the stream together, in their order;
// one event after them completes them all. Made, used and destroyed by threads that may wait for
// the device; one thread at a time calls Execute.
//
// A device that fails, is reset, or does not complete copies in time is lost: every later operation
// faults at once, and staging memory that the device may still use is never freed. Other sessions
// have other contexts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "gateway/base/status.h"
#include "gateway/base/time.h"
#include "gateway/device_memory/cuda.h"
#include "gateway/memory/memory_op.h"

namespace rocegw::device_memory {

// Pinned staging memory of a session for a device; more than one burst of a worker.
inline constexpr size_t kStagingBytes = size_t{1} << 20;

class DeviceEngine {
 public:
  // Copies that take longer count as lost. patience: that time.
  static StatusOr<std::shared_ptr<DeviceEngine>> Open(std::shared_ptr<const Cuda> cuda,
                                                      const CuUuid& device,
                                                      Duration patience = Seconds(5));
  ~DeviceEngine();
  DeviceEngine(const DeviceEngine&) = delete;
  DeviceEngine& operator=(const DeviceEngine&) = delete;

  const Cuda& cuda() const { return *cuda_; }
  CuContext context() const { return context_; }
  const CuUuid& device() const { return device_; }
  bool lost() const { return lost_.load(std::memory_order_acquire); }

  // Executes reads and writes of an allocation in order; `memory` is the engine's pointer to the
  // byte with the client's address `address`. Returns the index of the first operation that failed,
  // or ops.size(). Atomics fail: a copy engine has none.
  size_t Execute(std::span<memory::MemoryOp> ops, CuPointer memory, uint64_t address);

 private:
  // Position in a list of operations.
  struct Cursor {
    size_t op = 0;
    uint32_t offset = 0;
  };

  DeviceEngine(std::shared_ptr<const Cuda> cuda, const CuUuid& device, Duration patience)
      : cuda_(std::move(cuda)), device_(device), patience_(patience) {}
  Status MakeContext();
  Status Prepare();
  // Begins copies from `from` on, as many as staging memory holds. Returns the position behind the
  // last one. *failed: the device refused the copy there.
  Cursor Begin(std::span<memory::MemoryOp> ops, Cursor from, CuPointer memory, uint64_t address,
               bool* failed);
  // Waits for the copies that were begun. Returns false if the device is lost.
  bool Await();
  void TakeReads(std::span<memory::MemoryOp> ops, Cursor from, Cursor to);

  const std::shared_ptr<const Cuda> cuda_;
  const CuUuid device_;
  const Duration patience_;
  CuContext context_ = nullptr;
  CuStream stream_ = nullptr;
  CuEvent event_ = nullptr;
  uint8_t* staging_ = nullptr;
  std::atomic<bool> lost_{false};
};

}  // namespace rocegw::device_memory
