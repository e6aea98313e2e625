// SPDX-License-Identifier: Apache-2.0
// What this process has mapped where, asked of the kernel: PROCMAP_QUERY on /proc/self/maps
// (Linux 6.11), else its text. Any thread; allocates nothing.
#pragma once

#include <cstdint>

namespace rocegw::client {

struct MappedArea {
  uint64_t start;
  uint64_t end;
  uint64_t offset;  // in the file
  uint64_t inode;   // 0: anonymous
  uint32_t device_major;
  uint32_t device_minor;
  bool readable;
  bool writable;
  bool executable;
  bool shared;
  bool named;  // has a name in brackets: stack, heap (the brk area), vdso, or one by prctl(2)
};

// The area that holds `address`, or the next one behind it. 0, ENOENT when there is none, ENOSYS
// when that cannot be asked (no /proc in a bare chroot), or an errno value.
int FindMappedArea(uint64_t address, MappedArea* area);

// The same by text alone, as on kernels without the query; for tests.
int FindMappedAreaInText(uint64_t address, MappedArea* area);

// 0 when every page of [address, address + length) is mapped readable (and writable where asked),
// else EFAULT. Without /proc only whether it is mapped at all: who may do what shows when it is
// done.
int CheckMapped(uint64_t address, uint64_t length, bool need_write);

// The same without /proc; for tests.
int CheckMappedByPages(uint64_t address, uint64_t length);

// True when no area in the range has a property that another mapping in its place would lose:
// locked, huge pages, excluded from fork or core dumps, watched by a userfaultfd, a protection
// key ... Reads /proc/self/smaps, which takes time in proportion to the process's memory.
bool HasOrdinaryProperties(uint64_t start, uint64_t end);

// Resident memory of this process in bytes; 0 when that cannot be read.
uint64_t ResidentBytes();

// After fork: the descriptor in use shows the parent's memory.
void ForgetMemoryMap();

}  // namespace rocegw::client
