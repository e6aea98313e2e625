// SPDX-License-Identifier: Apache-2.0
// Client memory by process_vm_readv(2) and process_vm_writev(2): supports every kind of mapping,
// and registration is free. Only for processes of the gateway's own user, because it has no right
// to access others.
#pragma once

#include <sys/types.h>

#include "gateway/memory/foreign_memory.h"

namespace rocegw::memory {

class CrossProcessMemory final : public ForeignMemory {
 public:
  CrossProcessMemory(pid_t pid, AtomicLocks& locks) : ForeignMemory(locks), pid_(pid) {}

  // Returns true if the system permits access to that process. Touches none of its memory, so it
  // cannot block.
  static bool Permitted(pid_t pid);

 private:
  uint64_t Move(bool write, Pieces& pieces) override;

  pid_t pid_;
};

}  // namespace rocegw::memory
