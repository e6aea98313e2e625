// SPDX-License-Identifier: Apache-2.0
// Memory of the process that contains the gateway (docs/user/in_process.md): client addresses are
// local addresses. The program may unmap registered memory at any time, so the kernel moves the
// bytes: it reports a missing page as an error, not as a signal. Small amounts go through a mapped
// file (preadv(2), pwritev(2)), which costs less than half of process_vm_writev(2) for a few KiB
// (docs/benchmarks.md); large amounts use that call. Both respect page protection and support every
// kind of mapping.
#pragma once

#include "gateway/memory/foreign_memory.h"

namespace rocegw::memory {

class OwnMemory final : public ForeignMemory {
 public:
  explicit OwnMemory(AtomicLocks& locks) : ForeignMemory(locks) {}

 private:
  uint64_t Move(bool write, Pieces& pieces) override;
};

}  // namespace rocegw::memory
