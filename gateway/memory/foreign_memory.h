// SPDX-License-Identifier: Apache-2.0
// What the two ways into another process's memory have in common: order, batches, the exact place
// of a fault, atomics. A run of equal direction becomes lists of at most 1024 pieces (IOV_MAX);
// neighbouring remote pieces are joined; the last word of a published write is a piece of its own,
// behind the rest. Operations with `direct` set are copied on the spot. Several threads may execute
// at once (a session's queue pairs sit on several workers): the lists belong to the thread. Revoke
// may come from any other.
#pragma once

#include <sys/uio.h>

#include <atomic>

#include "gateway/memory/atomic_locks.h"
#include "gateway/memory/memory_op.h"

namespace rocegw::memory {

class ForeignMemory : public MemorySpace {
 public:
  size_t Execute(std::span<MemoryOp> ops, MemoryCounts& counts) final;

  // From now on everything faults: the process is gone, and its number may soon belong to another
  // one.
  void Revoke() { revoked_.store(true, std::memory_order_release); }

  bool Gone() const final {
    return gone_.load(std::memory_order_acquire) || revoked_.load(std::memory_order_acquire);
  }

 protected:
  // Lists of equal total length. Each remote piece is covered by whole local ones, remote_locals of
  // them.
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

  // Moves bytes in order, until the first that cannot be: how many were moved. 0 although there are
  // some: the first byte is not accessible.
  virtual uint64_t Move(bool write, Pieces& pieces) = 0;
  // Move found no process behind the memory.
  void MarkGone() { gone_.store(true, std::memory_order_release); }

 private:
  // A position inside a run, in bytes.
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
