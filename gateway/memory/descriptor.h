// SPDX-License-Identifier: Apache-2.0
// Client memory by reading and writing the /proc/self/mem descriptor that the client opened and
// sent: works across users and PID namespaces without privilege (proc(5)). The descriptor stays
// bound to that address space, so a reused PID cannot confuse it; a result of 0 bytes means that
// the process is gone. Unlike process_vm_writev it also writes to read-only mappings, so the client
// library checks permissions when it registers.
#pragma once

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/memory/foreign_memory.h"

namespace rocegw::memory {

class DescriptorMemory final : public ForeignMemory {
 public:
  // With an invalid descriptor, every operation faults.
  DescriptorMemory(UniqueFd memory, AtomicLocks& locks)
      : ForeignMemory(locks), memory_(std::move(memory)) {}

  // Checks that a descriptor from a client is the mem file of a process, open for reading and
  // writing. Any other file would let the client make the gateway write with its own rights, or
  // block it.
  static Status Check(int fd);

  // Returns the descriptor; -1: none.
  int fd() const { return memory_.get(); }
  // Atomically replaces the descriptor, also while Execute runs on another thread.
  Status Replace(UniqueFd memory);

 private:
  uint64_t Move(bool write, Pieces& pieces) override;

  UniqueFd memory_;
};

}  // namespace rocegw::memory
