// SPDX-License-Identifier: Apache-2.0
// Copies between the gateway's memory and a GPU for one session: a context of its own, a stream, an
// event, and pinned staging memory. Copies of one call enter the stream together, in their order;
// one event after them completes them all. Made, used and ended by threads that may wait for the
// device; one thread at a time calls Execute.
//
// A device that fails, is reset, or does not complete copies in time is lost: every later operation
// faults at once. Other sessions have other contexts. The end of a context that failed frees all
// that it had. A context whose copies did not end is kept, with the staging memory that the device
// may still use, to the end of the process: the end of such a context could wait for ever.
//
// In a program's own process the context is the program's, so that its addresses are valid there.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "gateway/base/status.h"
#include "gateway/base/time.h"
#include "gateway/device_memory/calls.h"
#include "gateway/device_memory/driver.h"
#include "gateway/memory/memory_op.h"

namespace rocegw::device_memory {

// Pinned staging memory of a session for a device; more than one burst of a worker.
inline constexpr size_t kStagingBytes = size_t{1} << 20;

// Costs of an engine for the owner of the session: released with the last pointer, unless the
// engine ended and could not free what it had.
class EngineCosts {
 public:
  // released: called by any thread.
  explicit EngineCosts(std::function<void()> released) : released_(std::move(released)) {}
  ~EngineCosts() {
    if (!kept_) released_();
  }
  EngineCosts(const EngineCosts&) = delete;
  EngineCosts& operator=(const EngineCosts&) = delete;
  void Keep() { kept_ = true; }

 private:
  const std::function<void()> released_;
  bool kept_ = false;
};

class DeviceEngine {
 public:
  struct Wish {
    CuUuid device{};
    // Context of the program itself (in its own process); nullptr: the engine makes one.
    CuContext context = nullptr;
    bool primary = false;  // that context is the device's primary one, retained for the engine
    Duration patience = Seconds(5);  // copies that take longer count as lost
    CallDriver calls;
    std::shared_ptr<EngineCosts> costs;  // may be empty
  };
  static StatusOr<std::shared_ptr<DeviceEngine>> Open(std::shared_ptr<const Driver> driver,
                                                      Wish wish);
  ~DeviceEngine();
  DeviceEngine(const DeviceEngine&) = delete;
  DeviceEngine& operator=(const DeviceEngine&) = delete;

  const Driver& driver() const { return *driver_; }
  CuContext context() const { return context_; }
  const CuUuid& device() const { return wish_.device; }
  CuDevice ordinal() const { return ordinal_; }
  const CallDriver& calls() const { return wish_.calls; }
  bool lost() const { return loss_.load(std::memory_order_acquire) != Loss::kNone; }
  // Returns true for an engine in that device, and in that context of the program.
  bool IsFor(const CuUuid& device, CuContext context) const;

  // Frees what the engine has, as far as possible. Called by the thread that opens and closes.
  void End();

  // Executes reads and writes of an allocation in order; `memory` is the engine's pointer to the
  // byte with the client's address `address`. Returns the index of the first operation that failed,
  // or ops.size(). Atomics fail: a copy engine has none.
  size_t Execute(std::span<memory::MemoryOp> ops, CuPointer memory, uint64_t address);

 private:
  enum class Loss : uint8_t { kNone, kFailed, kSilent };
  // Position in a list of operations.
  struct Cursor {
    size_t op = 0;
    uint32_t offset = 0;
  };

  DeviceEngine(std::shared_ptr<const Driver> driver, Wish wish)
      : driver_(std::move(driver)), wish_(std::move(wish)) {}
  Status MakeContext();
  Status Prepare();
  size_t ExecuteHere(std::span<memory::MemoryOp> ops, CuPointer memory, uint64_t address);
  // Begins copies from `from` on, as many as staging memory holds. Returns the position behind the
  // last one. *failed: the device refused the copy there.
  Cursor Begin(std::span<memory::MemoryOp> ops, Cursor from, CuPointer memory, uint64_t address,
               bool* failed);
  // Waits for the copies that were begun. Returns false if the device is lost.
  bool Await();
  void TakeReads(std::span<memory::MemoryOp> ops, Cursor from, Cursor to);
  // Returns true if all was freed.
  bool Free();

  const std::shared_ptr<const Driver> driver_;
  Wish wish_;
  CuDevice ordinal_ = 0;
  CuContext context_ = nullptr;
  CuStream stream_ = nullptr;
  CuEvent event_ = nullptr;
  uint8_t* staging_ = nullptr;
  std::mutex in_use_;  // held while the context is used
  std::atomic<Loss> loss_{Loss::kNone};
  bool ended_ = false;
};

}  // namespace rocegw::device_memory
