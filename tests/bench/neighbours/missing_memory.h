// SPDX-License-Identifier: Apache-2.0
// Pages that never become present: a thread that touches them waits for a userfaultfd handler that
// does not exist.
#pragma once

#include <cstddef>

namespace rocegw::bench {

// Makes such memory. Ends the program if the kernel gives it no userfaultfd that blocks accesses of
// other processes (CAP_SYS_PTRACE, or vm.unprivileged_userfaultfd). The memory blocks a gateway of
// the same user, which uses process_vm_readv; reads of /proc/PID/mem fail instead (Linux 6.5).
class MissingMemory {
 public:
  MissingMemory();
  // The memory and its userfaultfd live as long as the process.
  MissingMemory(const MissingMemory&) = delete;
  MissingMemory& operator=(const MissingMemory&) = delete;

  void* at() const { return at_; }
  size_t size() const { return size_t{1} << 20; }

 private:
  void* at_;
};

// Posts a WRITE of such memory on a queue pair that is connected to itself. Ends the process 20 ms
// later.
[[noreturn]] void LeaveWithMissingMemory(const MissingMemory& missing, int gid_index);

}  // namespace rocegw::bench
