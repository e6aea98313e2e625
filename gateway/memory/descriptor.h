// SPDX-License-Identifier: Apache-2.0
// Client memory by reading and writing the client's own /proc/self/mem descriptor, which it opened
// and sent: works across users and process id namespaces without any privilege (proc(5)). It stays
// bound to that address space, so a reused process number cannot mislead it; a result of 0 bytes
// means the process is gone. Unlike process_vm_writev it writes where a mapping is read-only: the
// client's library looks at permissions when it registers.
#pragma once

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/memory/foreign_memory.h"

namespace rocegw::memory {

class DescriptorMemory final : public ForeignMemory {
 public:
  // An invalid descriptor makes a memory where everything faults.
  DescriptorMemory(UniqueFd memory, AtomicLocks& locks)
      : ForeignMemory(locks), memory_(std::move(memory)) {}

  // Whether a descriptor from a client really is some process's mem file, open for reading and
  // writing: through anything else the client could make us write with our rights, or block us.
  static Status Check(int fd);

  // Takes another descriptor's place in one step, also while Execute runs on another thread.
  Status Replace(UniqueFd memory);

 private:
  uint64_t Move(bool write, Pieces& pieces) override;

  UniqueFd memory_;
};

}  // namespace rocegw::memory
