// SPDX-License-Identifier: Apache-2.0
// Memory whose pages were moved onto memfds that the daemon maps too, and the calls that
// depend on it: madvise, growing of mappings, fork. Two locks: the move lock, held while regions
// are created and removed; and inside it, for moments, the tree lock, the only one that hooks on
// other threads take. Under the tree lock nothing is allocated and the daemon is not called.
#pragma once

#include <cstdint>

#include "gateway/client/memory/interval_tree.h"
#include "gateway/client/memory/memory_map.h"
#include "gateway/client/memory/page_mover.h"
#include "gateway/client/session/session.h"

namespace rocegw::client {

// Pages [start, end) whose content lies in the memfd from offset 0 on. The current
// mapping may differ: programs unmap and map without notice, so it is checked at each use.
struct Region : Interval {
  Region* next_unused;  // while `listed`
  Session* session;
  uint64_t inode;
  uint32_t device_major;
  uint32_t device_minor;
  int64_t made_ns;      // CLOCK_MONOTONIC
  uint32_t handle;      // the daemon's handle; 0: none (any more)
  uint32_t references;  // number of registrations
  int memfd;
  bool automatic;     // moved by rule, not on the user's order
  bool left;          // could not be moved back; kept only until it is unmapped
  bool has_children;  // forked processes may map its pages
  bool inherited;     // this process is such a fork
  bool listed;        // in remap.cc's list of unused regions

  uint64_t length() const { return end - start; }
};

// Scope of the move lock.
class MoveLock {
 public:
  MoveLock();
  ~MoveLock();
  MoveLock(const MoveLock&) = delete;
  MoveLock& operator=(const MoveLock&) = delete;
};
const IntervalTree<Region>& Regions();
void AddRegion(Region* region);
// Closes the memfd, releases the session and frees the region.
void RemoveRegion(Region* region);
// Returns false if the program closed the memfd's number.
bool HasMemfd(const Region& region);
// Reports that the process's memory calls reach our hooks (hooks/memory_hooks.cc). Without hooks
// nothing may be moved: a library that was not preloaded has none.
void SetHooked();
bool IsHooked();
// Returns the guard for MovePages and MovePagesBack.
PieceGuard TreeGuard();

// Returns true if the area maps the region's own page at this address.
bool ShowsRegion(const Region& region, const MappedArea& area, uint64_t address);
// Returns true if every page of [start, end) does.
bool ShowsAllOf(const Region& region, uint64_t start, uint64_t end);
// Returns true if every page does, and is readable and writable.
bool IsIntact(const Region& region, uint64_t start, uint64_t end);

// Calls visit(start, length, area) for each part of [start, end) that still maps the region.
template <typename Visit>
void ForEachShownPiece(const Region& region, uint64_t start, uint64_t end, Visit visit) {
  if (start < region.start) start = region.start;
  if (end > region.end) end = region.end;
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

// For hooks. Cheap first check: returns true if anything was moved in this process.
bool AnyRegions();
// Returns true if a page of [start, end) was moved.
bool ShowsRegions(uint64_t start, uint64_t end);
// Zeroes the moved pages of [start, end) and frees their memory. Returns false if there are none;
// otherwise *error is the last errno value.
bool ZeroRegions(uint64_t start, uint64_t end, int* error);

// Fork handlers. A child gets the content as its own: its writes must not appear in the parent.
// Later writes of the parent and the daemon may still appear in pages that the child has not
// written.
void LockRegions();
void UnlockRegions();
void MakeRegionsPrivateInChild();

}  // namespace rocegw::client
