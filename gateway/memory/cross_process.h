// SPDX-License-Identifier: Apache-2.0
// Client memory by process_vm_readv and process_vm_writev (process_vm_readv(2)): works for every
// kind of mapping, costs nothing at registration. For processes of our own user; the daemon has no
// right to look into others.
#pragma once

#include <sys/types.h>

#include "gateway/memory/foreign_memory.h"

namespace rocegw::memory {

class CrossProcessMemory final : public ForeignMemory {
 public:
  CrossProcessMemory(pid_t pid, AtomicLocks& locks) : ForeignMemory(locks), pid_(pid) {}

  // Whether the system lets us reach that process. Touches none of its memory, so it cannot block.
  static bool Permitted(pid_t pid);

 private:
  uint64_t Move(bool write, Pieces& pieces) override;

  pid_t pid_;
};

}  // namespace rocegw::memory
