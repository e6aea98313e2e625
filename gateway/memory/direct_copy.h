// SPDX-License-Identifier: Apache-2.0
// Memory operations on bytes that the gateway has mapped as well (remapped regions): plain copies
// and atomic instructions. Called by the thread that executes the session's operations. The mapping
// is sealed against shrinking, so nothing here faults.
#pragma once

#include <cstdint>

#include "gateway/memory/atomic_locks.h"
#include "gateway/memory/memory_op.h"

namespace rocegw::memory {

// Returns the number of bytes at the end of a published write that become visible last: those in
// the same aligned 8-byte word as the last byte. A flag that a program polls lies in one such word.
inline uint32_t PublishTail(const MemoryOp& op) {
  if (op.length == 0) return 0;
  const uint64_t last = op.address + op.length - 1;
  const uint64_t in_word = (last & 7) + 1;
  return static_cast<uint32_t>(in_word < op.length ? in_word : op.length);
}

// Returns the memory's value after an atomic operation, given the original value.
inline uint64_t AtomicResult(const MemoryOp& op, uint64_t original) {
  switch (op.kind) {
    case OpKind::kFetchAdd:
      return original + op.swap_or_add;
    case OpKind::kAtomicStore:
      return op.swap_or_add;
    case OpKind::kFetchAnd:
      return original & op.swap_or_add;
    case OpKind::kFetchOr:
      return original | op.swap_or_add;
    case OpKind::kFetchXor:
      return original ^ op.swap_or_add;
    case OpKind::kCompareSwap:
      return original == op.compare ? op.swap_or_add : original;
    case OpKind::kAtomicLoad:
    case OpKind::kRead:
    case OpKind::kWrite:
      break;
  }
  return original;
}

// The two steps of a write with `direct` set and a buffer, which a copy engine may separate: all
// bytes but those of PublishTail, and then those, which become visible last.
inline uint32_t HeadLength(const MemoryOp& op) {
  return op.length - (op.publish ? PublishTail(op) : 0);
}
void WriteHead(const MemoryOp& op);
void WriteTail(const MemoryOp& op);

// Executes an operation with `direct` set. Returns false for an unaligned atomic.
bool ExecuteDirect(MemoryOp& op, AtomicLocks& locks);

// Prefetches the first cache lines that a write will store to, because the hardware prefetcher
// restarts at every page. A hint; the operation need not be valid.
void PrefetchDirect(const MemoryOp& op);

}  // namespace rocegw::memory
