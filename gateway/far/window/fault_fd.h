// SPDX-License-Identifier: Apache-2.0
// userfaultfd(2) for one stretch of memory: faults of missing and of write-protected pages are
// reported, and resolved by calls of this object. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::far {

class FaultFd {
 public:
  struct Fault {
    uintptr_t address = 0;
    bool protection = false;  // a store to a write-protected page; otherwise the page is missing
    bool store = false;
  };

  // The memory is anonymous and private. `bus_errors`: a fault is not reported here, but raises
  // SIGBUS in its thread (BUS_ADRERR), and pages can be moved. ENOSYS, EPERM: the kernel lacks or
  // refuses something.
  Status Open(void* memory, size_t bytes, bool bus_errors = false);

  int get() const { return fd_.get(); }
  // Whether faults of system calls are reported as well; without privilege such calls fail
  // (EFAULT).
  bool reports_system_calls() const { return reports_system_calls_; }
  // Whether pages can be moved, which Linux can from 6.8 on.
  bool can_move() const { return can_move_; }
  // Adds memory that pages are moved to.
  Status Register(void* memory, size_t bytes);
  // Moves a page to registered memory that has none there; the page is missing then. Returns false
  // for a page that a device or a system call has pinned: it may still be written to.
  bool Move(uintptr_t address, uintptr_t to);
  // Faults there are not reported any more, and stores proceed; threads that wait try again. The
  // pages stay. Returns false, and changes nothing, when the kernel has no room for that.
  bool Unregister(void* memory, size_t bytes);
  // Takes the faults that wait, none at all without waiting.
  std::vector<Fault> Take();
  // Fills missing pages and wakes their threads, also those of pages that are not registered any
  // more. Stores to the pages are reported when `protect`.
  void Fill(uintptr_t address, const void* data, size_t bytes, bool protect);
  // Loads and stores of the page raise SIGBUS from now on.
  void Poison(uintptr_t address);
  // Stores to present pages are reported, or proceed.
  void Protect(uintptr_t address, size_t bytes);
  void Unprotect(uintptr_t address, size_t bytes);
  // Threads that wait try again.
  void Wake(uintptr_t address, size_t bytes);

 private:
  void SetProtection(uintptr_t address, size_t bytes, uint64_t mode);

  UniqueFd fd_;
  bool reports_system_calls_ = false;
  bool can_move_ = false;
};

}  // namespace rocegw::far
