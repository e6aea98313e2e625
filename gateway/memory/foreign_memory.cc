// SPDX-License-Identifier: Apache-2.0
#include "gateway/memory/foreign_memory.h"

#include <cstring>

#include "gateway/memory/direct_copy.h"

namespace rocegw::memory {
namespace {

// Limit of bytes per call: the kernel cuts longer lists at 2 GiB minus a page.
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

// On x86, stores of one call become visible in list order (a string store may be reordered
// internally, but what follows it is not). Elsewhere the published word needs a call of its own.
#if defined(__x86_64__)
constexpr bool kListOrderIsVisible = true;
#else
constexpr bool kListOrderIsVisible = false;
#endif

}  // namespace

ForeignMemory::Pieces& ForeignMemory::Scratch() {
  thread_local Pieces pieces;
  return pieces;
}

void ForeignMemory::Gather(std::span<MemoryOp> run, Cursor from) {
  Pieces& p = Scratch();
  p.locals = p.remotes = 0;
  p.bytes = 0;
  bool may_join = false;
  for (size_t i = from.op; i < run.size(); ++i, from.offset = 0) {
    const MemoryOp& op = run[i];
    const uint64_t head_end = op.length - (op.publish ? PublishTail(op) : 0);
    while (from.offset < op.length) {
      const bool is_tail = from.offset >= head_end;
      if (is_tail && !kListOrderIsVisible && p.bytes != 0) return;
      if (p.locals == Pieces::kMax || p.bytes == kMaxBytes) return;
      uint64_t length = (is_tail ? op.length : head_end) - from.offset;
      if (length > kMaxBytes - p.bytes) length = kMaxBytes - p.bytes;
      const uint64_t address = op.address + from.offset;
      p.local[p.locals++] = {op.buffer + from.offset, length};
      // The kernel looks up the pages of each remote piece. A published word joins the piece before
      // it, too, since the kernel copies one local piece after the other.
      const bool joins = may_join && (kListOrderIsVisible || !is_tail) &&
                         reinterpret_cast<uint64_t>(p.remote[p.remotes - 1].iov_base) +
                                 p.remote[p.remotes - 1].iov_len ==
                             address;
      if (joins) {
        p.remote[p.remotes - 1].iov_len += length;
        ++p.remote_locals[p.remotes - 1];
      } else {
        p.remote_locals[p.remotes] = 1;
        p.remote[p.remotes++] = {reinterpret_cast<void*>(address), length};
      }
      may_join = kListOrderIsVisible || !is_tail;
      p.bytes += length;
      from.offset += length;
    }
  }
}

size_t ForeignMemory::ExecuteRun(std::span<MemoryOp> run) {
  const bool write = run.front().kind == OpKind::kWrite;
  Cursor cursor;
  while (true) {
    while (cursor.op < run.size() && cursor.offset == run[cursor.op].length)
      cursor = {cursor.op + 1, 0};
    if (cursor.op == run.size()) return run.size();
    if (revoked_.load(std::memory_order_acquire)) return cursor.op;
    Gather(run, cursor);
    uint64_t moved = Move(write, Scratch());
    if (moved == 0) return cursor.op;
    // A short result stops somewhere inside: continue from there, and the next call shows whether
    // it was a fault.
    while (moved != 0) {
      const uint64_t left = run[cursor.op].length - cursor.offset;
      if (moved < left) {
        cursor.offset += moved;
        break;
      }
      moved -= left;
      cursor = {cursor.op + 1, 0};
    }
  }
}

bool ForeignMemory::MoveWord(bool write, uint64_t address, uint64_t* word) {
  Pieces& p = Scratch();
  p.locals = p.remotes = 1;
  p.bytes = sizeof *word;
  p.local[0] = {word, sizeof *word};
  p.remote[0] = {reinterpret_cast<void*>(address), sizeof *word};
  p.remote_locals[0] = 1;
  return Move(write, p) == sizeof *word;
}

bool ForeignMemory::ExecuteAtomic(MemoryOp& op) {
  if (op.address % 8 != 0) return false;
  uint64_t original = 0;
  {
    AtomicLocks::Guard guard(locks_, op.address);
    if (!MoveWord(false, op.address, &original)) return false;
    uint64_t result = AtomicResult(op, original);
    if (result != original && !MoveWord(true, op.address, &result)) return false;
  }
  std::memcpy(op.buffer, &original, sizeof original);
  return true;
}

size_t ForeignMemory::Execute(std::span<MemoryOp> ops, MemoryCounts& counts) {
  size_t i = 0;
  while (i < ops.size()) {
    MemoryOp& op = ops[i];
    if (revoked_.load(std::memory_order_acquire)) return i;
    if (op.direct != nullptr) {
      if (i + 1 < ops.size()) PrefetchDirect(ops[i + 1]);
      if (!ExecuteDirect(op, locks_)) return i;
      ++counts.direct_operations;
      counts.direct_bytes += op.length;
      ++i;
      continue;
    }
    size_t end = i + 1;
    size_t done = 0;
    if (op.is_atomic()) {
      done = ExecuteAtomic(op) ? 1 : 0;
    } else {
      while (end < ops.size() && ops[end].direct == nullptr && ops[end].kind == op.kind) ++end;
      done = ExecuteRun(ops.subspan(i, end - i));
    }
    for (size_t k = i; k < i + done; ++k) {
      ops[k].crc_valid = false;
      ++counts.cross_operations;
      counts.cross_bytes += ops[k].length;
    }
    i += done;
    if (i < end) return i;
  }
  return i;
}

}  // namespace rocegw::memory
