// SPDX-License-Identifier: Apache-2.0
// Memory of the process that we ourselves are part of (docs/user/in_process.md): addresses of the
// client are addresses here. The program may unmap at any time what it has registered, so even so
// the bytes are moved by the kernel, for which a missing page is an error and no signal: small
// amounts between the memory and a file of our own that is mapped (preadv(2), pwritev(2)), which
// costs less than half of process_vm_writev(2) on a few KiB (docs/benchmarks.md), large ones by
// that call. Both look at the protection of pages and reach every kind of mapping.
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
