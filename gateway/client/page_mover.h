// SPDX-License-Identifier: Apache-2.0
// Moves pages of this process onto a memfd at the same addresses while other threads read and write
// them, losing nothing: each piece is write-protected (userfaultfd), copied, replaced by the
// mapping of the copy, and its waiting writers woken (userfaultfd(2), "write-protect mode"). A
// writer waits well below a millisecond. The caller guarantees that the pages are private and
// anonymous and that neither its stack nor its errno lies in them; nothing here allocates or logs
// meanwhile.
#pragma once

#include <cstdint>

namespace rocegw::client {

// A userfaultfd that may also hold back system calls of other threads; made through `device`
// (/dev/userfaultfd) where that is not -1. -1 when this process may not have one or the kernel
// cannot do what is needed (Linux 6.4).
int OpenUserfault(int device);

enum class MoveResult { kMoved, kNothingMoved, kPartlyMoved };

// [start, start + length) in whole pages, to offset 0 of the memfd.
MoveResult MovePages(int userfault, uint64_t start, uint64_t length, int memfd);

}  // namespace rocegw::client
