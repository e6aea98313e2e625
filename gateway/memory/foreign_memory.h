// SPDX-License-Identifier: Apache-2.0
// Common part of the ways to access another process's memory: order, batches, the exact position of
// a fault, atomics. A run of operations in one direction becomes lists of at most 1024 pieces
// (IOV_MAX); adjacent remote pieces are merged; the last word of a published write is a local piece
// of its own, after the rest. Operations with `direct` set are executed at once. Several threads
// may call Execute concurrently, because a session's queue pairs sit on several workers: the lists
// are per thread. Any thread may call Revoke.
#pragma once

#include <sys/uio.h>

#include <atomic>

#include "gateway/memory/atomic_locks.h"
#include "gateway/memory/memory_op.h"

namespace rocegw::memory {

class ForeignMemory : public MemorySpace {
 public:
  size_t Execute(std::span<MemoryOp> ops, MemoryCounts& counts) final;

  // Makes every later operation fault: the process is gone, and its PID may soon belong to another
  // one.
  void Revoke() { revoked_.store(true, std::memory_order_release); }

  bool Gone() const final {
    return gone_.load(std::memory_order_acquire) || revoked_.load(std::memory_order_acquire);
  }

 protected:
  // I/O lists of equal total length. Whole local pieces cover each remote piece; remote_locals is
  // their number.
  struct Pieces {
    static constexpr size_t kMax = 1024;
    iovec local[kMax];
    iovec remote[kMax];
    uint16_t remote_locals[kMax];
    size_t locals = 0;
    size_t remotes = 0;
    uint64_t bytes = 0;
  };

  explicit ForeignMemory(AtomicLocks& locks) : locks_(locks) {}

  // Moves bytes in order up to the first inaccessible one, and returns their number. 0 means that
  // the first byte is not accessible.
  virtual uint64_t Move(bool write, Pieces& pieces) = 0;
  // Records that Move found no process.
  void MarkGone() { gone_.store(true, std::memory_order_release); }

 private:
  // Position in a run, in bytes.
  struct Cursor {
    size_t op = 0;
    uint64_t offset = 0;
  };

  size_t ExecuteRun(std::span<MemoryOp> run);
  bool ExecuteAtomic(MemoryOp& op);
  bool MoveWord(bool write, uint64_t address, uint64_t* word);
  void Gather(std::span<MemoryOp> run, Cursor from);
  static Pieces& Scratch();

  AtomicLocks& locks_;
  std::atomic<bool> revoked_{false};
  std::atomic<bool> gone_{false};
};

}  // namespace rocegw::memory
