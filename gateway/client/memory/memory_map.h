// SPDX-License-Identifier: Apache-2.0
// Memory mappings of this process, from the kernel: PROCMAP_QUERY on /proc/self/maps (Linux 6.11),
// else its text. Any thread; allocates nothing.
#pragma once

#include <cstdint>

namespace rocegw::client {

struct MappedArea {
  uint64_t start;
  uint64_t end;
  uint64_t offset;  // offset in the file
  uint64_t inode;   // 0: anonymous
  uint32_t device_major;
  uint32_t device_minor;
  bool readable;
  bool writable;
  bool executable;
  bool shared;
  bool named;  // name in brackets: stack, heap (the brk area), vdso, or one set by prctl(2)
};

// Returns the area that contains `address`, or the next one behind it. 0; ENOENT: none; ENOSYS:
// unknown (no /proc in a bare chroot); or another errno value.
int FindMappedArea(uint64_t address, MappedArea* area);

// Does the same from the text alone, as on kernels without the query; for tests.
int FindMappedAreaInText(uint64_t address, MappedArea* area);

// Returns 0 if every page of [address, address + length) is mapped readable (and writable if
// requested), else EFAULT. Without /proc it only checks that the range is mapped; access rights
// then show at use.
int CheckMapped(uint64_t address, uint64_t length, bool need_write);

// Does the same without /proc; for tests.
int CheckMappedByPages(uint64_t address, uint64_t length);

// Returns true if no area in the range has a property that another mapping in its place would lose:
// locked, huge pages, excluded from fork or core dumps, watched by a userfaultfd, a protection key
// and so on. Reads /proc/self/smaps, which takes time in proportion to the process's memory.
bool HasOrdinaryProperties(uint64_t start, uint64_t end);

// Returns the resident memory of this process in bytes; 0: unknown.
uint64_t ResidentBytes();

// Call after fork: the open descriptor shows the parent's memory.
void ForgetMemoryMap();

}  // namespace rocegw::client
