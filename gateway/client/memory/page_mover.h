// SPDX-License-Identifier: Apache-2.0
// Exchange of pages while the process's threads use them: private pages for those of a memfd at the
// same addresses, and back, without losing a write. Each step is write-protected (userfaultfd),
// copied, and replaced by a mapping of the copy; then its waiting writers are woken
// (userfaultfd(2), "write-protect mode"). A writer waits well below a millisecond. Between
// protection and wake-up this thread runs with signals blocked and touches only its stack. The
// caller guarantees that the stack lies elsewhere, like errno and the C library's data of the
// thread. Control path; any thread, one caller at a time.
#pragma once

#include <cstdint>

namespace rocegw::client {

// Opens a userfaultfd that also covers other threads' system calls, through `device`
// (/dev/userfaultfd) if that is not -1. Returns -1 if the process may not have one or the kernel
// lacks the feature (Linux 6.4).
int OpenUserfault(int device);

// Called around the exchange of one step, with signals blocked, so that other threads can be
// excluded.
struct PieceGuard {
  void (*enter)();
  void (*leave)();
};

// Starts the watch; call before either of the next two. From then on the exchange fails if another
// mapping appears in the range; the caller checks afterwards that the right one is there. Ends with
// the exchange, or when the userfaultfd is closed.
bool WatchWrites(int userfault, uint64_t start, uint64_t length);

// Moves private, anonymous, writable pages to offset 0 of the memfd and maps the memfd instead.
// Untouched pages stay without memory. Returns the number of bytes, from `start` on, that are
// shared afterwards: all, or less after a failure.
uint64_t MovePages(int userfault, uint64_t start, uint64_t length, int memfd,
                   const PieceGuard& guard);

// Moves back pages that map the memfd from `offset` on. `protection`: their current protection,
// which they keep. `release`: frees memory of the memfd step by step; false if other processes
// still map it. Returns the number of bytes, from `start` on, that are private afterwards.
uint64_t MovePagesBack(int userfault, uint64_t start, uint64_t length, int memfd, uint64_t offset,
                       int protection, bool release, const PieceGuard& guard);

}  // namespace rocegw::client
