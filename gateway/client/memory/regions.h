// SPDX-License-Identifier: Apache-2.0
// The list of memory whose pages were moved onto memfds that the daemon maps too, and what depends
// on it behind the program's back: advice about memory, growing of mappings, fork. Two locks: the
// move lock, held while regions come and go; and inside it, for moments, the list lock, which is
// all that the hooks of other threads take: nothing is allocated and nobody is asked under it.
#pragma once

#include <cstdint>

#include "gateway/client/memory/memory_map.h"
#include "gateway/client/memory/page_mover.h"
#include "gateway/client/session/session.h"

namespace rocegw::client {

// Pages [start, start + length) whose content lies in the memfd from offset 0 on. What is mapped
// there now is another question: programs unmap and map anew without asking, so that is looked up
// each time it matters.
struct Region {
  Region* next;
  Session* session;
  uint64_t start;
  uint64_t length;
  uint64_t inode;
  uint32_t device_major;
  uint32_t device_minor;
  int64_t made_ns;      // CLOCK_MONOTONIC
  uint32_t handle;      // at the daemon; 0: it has none (any more)
  uint32_t references;  // registrations
  int memfd;
  bool automatic;     // moved by rule, not by the user's word
  bool left;          // could not be moved back; only looked after until it is unmapped
  bool has_children;  // processes made by fork may show its pages
  bool inherited;     // we are such a process
};

// For holders of the move lock.
class MoveLock {
 public:
  MoveLock();
  ~MoveLock();
  MoveLock(const MoveLock&) = delete;
  MoveLock& operator=(const MoveLock&) = delete;
};
Region* FirstRegion();
void AddRegion(Region* region);
// Closes the memfd, releases the session and frees the region.
void RemoveRegion(Region* region);
// False: the program closed the memfd's number.
bool HasMemfd(const Region& region);
// The process's calls about memory come to our hooks (hooks/memory_hooks.cc says so), without which
// nothing may be moved: a library that was not preloaded has none.
void SetHooked();
bool IsHooked();
// What MovePages and MovePagesBack get.
PieceGuard ListGuard();

// Whether the area, at this address, shows the region's own page.
bool ShowsRegion(const Region& region, const MappedArea& area, uint64_t address);
// Whether every page of [start, end) does.
bool ShowsAllOf(const Region& region, uint64_t start, uint64_t end);
// The same, and all may be read and written.
bool IsIntact(const Region& region, uint64_t start, uint64_t end);

// Calls visit(start, length, area) for each part of [start, end) that still shows the region.
template <typename Visit>
void ForEachShownPiece(const Region& region, uint64_t start, uint64_t end, Visit visit) {
  if (start < region.start) start = region.start;
  if (end > region.start + region.length) end = region.start + region.length;
  while (start < end) {
    MappedArea area;
    if (FindMappedArea(start, &area) != 0) return;
    const uint64_t from = area.start > start ? area.start : start;
    const uint64_t to = area.end < end ? area.end : end;
    if (from >= end) return;
    if (ShowsRegion(region, area, from)) visit(from, to - from, area);
    start = to;
  }
}
bool IsShown(const Region& region, uint64_t start, uint64_t end);

// For hooks. Cheap question first: was anything moved in this process?
bool AnyRegions();
// Whether some page of [start, end) was moved.
bool ShowsRegions(uint64_t start, uint64_t end);
// Makes the moved pages of [start, end) zero and gives their memory back. False: there are none;
// else the last errno value is in *error.
bool ZeroRegions(uint64_t start, uint64_t end, int* error);

// Handlers of fork. A child gets the content as its own: what it writes there must not appear in
// the parent. What the parent and the daemon write afterwards may still appear in pages that the
// child has not written to.
void LockRegions();
void UnlockRegions();
void MakeRegionsPrivateInChild();

}  // namespace rocegw::client
