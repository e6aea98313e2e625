// SPDX-License-Identifier: Apache-2.0
// Memory operations on bytes that we have mapped too (remapped regions): plain copies and real
// atomic instructions. Called by whoever executes the session's operations. The mapping is sealed
// against shrinking, so none of this faults.
#pragma once

#include <cstdint>

#include "gateway/memory/atomic_locks.h"
#include "gateway/memory/memory_op.h"

namespace rocegw::memory {

// How many bytes at the end of a published write appear last: those that share an aligned word of
// eight with its last byte. A flag that a program polls lies in one such word.
inline uint32_t PublishTail(const MemoryOp& op) {
  if (op.length == 0) return 0;
  const uint64_t last = op.address + op.length - 1;
  const uint64_t in_word = (last & 7) + 1;
  return static_cast<uint32_t>(in_word < op.length ? in_word : op.length);
}

// One result of an atomic operation: what memory holds afterwards, given what it held.
inline uint64_t AtomicResult(const MemoryOp& op, uint64_t original) {
  if (op.kind == OpKind::kFetchAdd) return original + op.swap_or_add;
  if (op.kind == OpKind::kAtomicStore) return op.swap_or_add;
  return original == op.compare ? op.swap_or_add : original;
}

// Executes an operation whose `direct` is set. False for an atomic that is not aligned.
bool ExecuteDirect(MemoryOp& op, AtomicLocks& locks);

// Begins to fetch the first lines that a write will store to: the processor's own prefetching
// begins anew with each page. A hint; the operation need not be valid.
void PrefetchDirect(const MemoryOp& op);

}  // namespace rocegw::memory
