// SPDX-License-Identifier: Apache-2.0
// Exchanges the pages of this process under its own threads: private ones for those of a memfd at
// the same addresses, and back, losing no write. Each piece is write-protected (userfaultfd),
// copied, replaced by a mapping of the copy, and its waiting writers woken (userfaultfd(2),
// "write-protect mode"). A writer waits well below a millisecond. Between protection and wake-up
// this thread runs with signals blocked and touches nothing but its stack, which the caller
// guarantees to lie elsewhere, as do its errno and what the C library keeps for it.
// Control path; any thread, callers take turns.
#pragma once

#include <cstdint>

namespace rocegw::client {

// A userfaultfd that may also hold back system calls of other threads; made through `device`
// (/dev/userfaultfd) where that is not -1. -1 when this process may not have one or the kernel
// cannot do what is needed (Linux 6.4).
int OpenUserfault(int device);

// Called around the exchange of one piece, with signals blocked, so that others can keep out of it.
struct PieceGuard {
  void (*enter)();
  void (*leave)();
};

// Before either of the two below. From here on the exchange fails if something else is mapped in
// this place; whether the right thing is there now, the caller looks up afterwards. Ends with the
// exchange, or when the userfaultfd is closed.
bool WatchWrites(int userfault, uint64_t start, uint64_t length);

// Moves private, anonymous, writable pages to offset 0 of the memfd and maps that there instead.
// Pages that were never touched stay without memory. Returns how many bytes, from `start` on, are
// shared afterwards: all, or less after a failure.
uint64_t MovePages(int userfault, uint64_t start, uint64_t length, int memfd,
                   const PieceGuard& guard);

// The reverse, for pages that show the memfd from `offset` on. `protection` is what they have now
// and keep. `release`: memory of the memfd is given back as it empties; not when other processes
// still show it. Returns how many bytes, from `start` on, are private afterwards.
uint64_t MovePagesBack(int userfault, uint64_t start, uint64_t length, int memfd, uint64_t offset,
                       int protection, bool release, const PieceGuard& guard);

}  // namespace rocegw::client
