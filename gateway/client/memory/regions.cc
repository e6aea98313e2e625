// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/memory/regions.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/process/signals_blocked.h"

namespace rocegw::client {

namespace {

pthread_mutex_t g_move_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_tree_lock = PTHREAD_MUTEX_INITIALIZER;
IntervalTree<Region> g_regions;  // changing needs both locks, reading either
uint32_t g_region_count = 0;
bool g_hooked = false;  // set before there are threads

// Blocks signals too: a signal handler may call madvise.
class TreeLock {
 public:
  TreeLock() { pthread_mutex_lock(&g_tree_lock); }
  ~TreeLock() { pthread_mutex_unlock(&g_tree_lock); }
  TreeLock(const TreeLock&) = delete;
  TreeLock& operator=(const TreeLock&) = delete;

 private:
  SignalsBlocked blocked_;
};

int ProtectionOf(const MappedArea& area) {
  return (area.readable ? PROT_READ : 0) | (area.writable ? PROT_WRITE : 0) |
         (area.executable ? PROT_EXEC : 0);
}

// Without the memfd the content exists only in the mappings.
void ReplaceByCopy(uint64_t start, uint64_t length, int protection) {
  if ((protection & PROT_READ) == 0) return;
  void* copy = RawMap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return;
  memcpy(copy, reinterpret_cast<const void*>(start), length);
  RawSyscall(SYS_mprotect, copy, length, protection);
  RawSyscall(SYS_mremap, copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, start);
}

// Returns 0 or an errno value.
int Zero(const Region& region, uint64_t start, uint64_t length, const MappedArea& area) {
  void* place = reinterpret_cast<void*>(start);
  if (!region.inherited) return static_cast<int>(-RawAdvise(place, length, MADV_REMOVE));
  // Dropping our copies would only bring back the parent's pages.
  return RawMap(place, length, ProtectionOf(area), MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                0) == MAP_FAILED
             ? ENOMEM
             : 0;
}

}  // namespace

bool HasMemfd(const Region& region) {
  struct statx about = {};
  return region.memfd >= 0 &&
         RawSyscall(SYS_statx, region.memfd, "", AT_EMPTY_PATH, STATX_INO, &about) == 0 &&
         about.stx_ino == region.inode && about.stx_dev_major == region.device_major &&
         about.stx_dev_minor == region.device_minor;
}

MoveLock::MoveLock() { pthread_mutex_lock(&g_move_lock); }
MoveLock::~MoveLock() { pthread_mutex_unlock(&g_move_lock); }

void SetHooked() { g_hooked = true; }
bool IsHooked() { return g_hooked; }

const IntervalTree<Region>& Regions() { return g_regions; }

void AddRegion(Region* region) {
  region->session->AddReference();
  const TreeLock lock;
  g_regions.Insert(region);
  __atomic_add_fetch(&g_region_count, 1, __ATOMIC_RELAXED);
}

void RemoveRegion(Region* region) {
  {
    const TreeLock lock;
    g_regions.Remove(region);
    __atomic_sub_fetch(&g_region_count, 1, __ATOMIC_RELAXED);
  }
  if (HasMemfd(*region)) RawClose(region->memfd);
  region->session->Release();
  free(region);
}

PieceGuard TreeGuard() {
  return {[] { pthread_mutex_lock(&g_tree_lock); }, [] { pthread_mutex_unlock(&g_tree_lock); }};
}

bool ShowsRegion(const Region& region, const MappedArea& area, uint64_t address) {
  return area.shared != region.inherited && area.inode == region.inode &&
         area.device_major == region.device_major && area.device_minor == region.device_minor &&
         area.offset + (address - area.start) == address - region.start;
}

bool ShowsAllOf(const Region& region, uint64_t start, uint64_t end) {
  while (start < end) {
    MappedArea area;
    if (FindMappedArea(start, &area) != 0 || area.start > start) return false;
    if (!ShowsRegion(region, area, start)) return false;
    start = area.end;
  }
  return true;
}

bool IsIntact(const Region& region, uint64_t start, uint64_t end) {
  while (start < end) {
    MappedArea area;
    if (FindMappedArea(start, &area) != 0 || area.start > start) return false;
    if (!ShowsRegion(region, area, start) || !area.readable || !area.writable) return false;
    start = area.end;
  }
  return true;
}

bool IsShown(const Region& region, uint64_t start, uint64_t end) {
  bool shown = false;
  ForEachShownPiece(region, start, end,
                    [&](uint64_t, uint64_t, const MappedArea&) { shown = true; });
  return shown;
}

bool AnyRegions() { return __atomic_load_n(&g_region_count, __ATOMIC_RELAXED) != 0; }

bool ShowsRegions(uint64_t start, uint64_t end) {
  const TreeLock lock;
  return g_regions.FindOverlap(start, end, [&](const Region& region) {
    return IsShown(region, start, end);
  }) != nullptr;
}

bool ZeroRegions(uint64_t start, uint64_t end, int* error) {
  const TreeLock lock;
  bool any = false;
  g_regions.FindOverlap(start, end, [&](const Region& region) {
    ForEachShownPiece(region, start, end,
                      [&](uint64_t piece, uint64_t length, const MappedArea& area) {
                        any = true;
                        const int result = Zero(region, piece, length, area);
                        if (result != 0) *error = result;
                      });
    return false;
  });
  return any;
}

// Regions and their mappings change under the move lock only.
void LockRegions() {
  pthread_mutex_lock(&g_move_lock);
  g_regions.ForEach([](Region& region) { region.has_children = true; });
}

void UnlockRegions() { pthread_mutex_unlock(&g_move_lock); }

void MakeRegionsPrivateInChild() {
  g_regions.ForEach([](Region& region) {
    if (region.inherited) return;
    const bool has_memfd = HasMemfd(region);
    ForEachShownPiece(region, region.start, region.end,
                      [&](uint64_t piece, uint64_t length, const MappedArea& area) {
                        if (has_memfd) {
                          RawMap(reinterpret_cast<void*>(piece), length, ProtectionOf(area),
                                 MAP_PRIVATE | MAP_FIXED, region.memfd, piece - region.start);
                        } else {
                          ReplaceByCopy(piece, length, ProtectionOf(area));
                        }
                      });
    if (has_memfd) RawClose(region.memfd);
    region.memfd = -1;
    region.handle = 0;
    region.inherited = true;
  });
  pthread_mutex_init(&g_tree_lock, nullptr);
  pthread_mutex_init(&g_move_lock, nullptr);
}

}  // namespace rocegw::client
