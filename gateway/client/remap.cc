// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/remap.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "gateway/client/memory_map.h"
#include "gateway/client/objects.h"
#include "gateway/client/page_mover.h"
#include "gateway/client/raw_syscall.h"
#include "gateway/client/report.h"

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
  uint32_t handle;      // at the daemon; 0: not used for registrations (any more)
  uint32_t references;  // memory regions
  int memfd;
};

namespace {

constexpr uint64_t kWorthwhile = 1u << 20;  // smaller ranges gain nothing
constexpr uint64_t kMostIdle = 256u << 20;  // bytes that stay moved without a registration

enum class Mode { kOff, kAuto, kOn };

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
Region* g_regions = nullptr;  // newest first
uint32_t g_region_count = 0;

uint64_t PageSize() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

Mode ModeOf(Session* session) {
  const char* choice = getenv("ROCEGW_REMAP");
  if (choice != nullptr && strcmp(choice, "off") == 0) return Mode::kOff;
  if ((session->welcome().flags & ROCEGW_WELCOME_REMAP) == 0) return Mode::kOff;
  return choice != nullptr && strcmp(choice, "on") == 0 ? Mode::kOn : Mode::kAuto;
}

bool Covers(const Region& region, uint64_t start, uint64_t end) {
  return region.start <= start && end <= region.start + region.length;
}

bool IsPartOf(const Region& region, const MappedArea& area, uint64_t address) {
  return area.shared && area.inode == region.inode && area.device_major == region.device_major &&
         area.device_minor == region.device_minor &&
         area.offset + (address - area.start) == address - region.start;
}

// Every page of the range still shows the region's own page.
bool IsIntact(const Region& region, uint64_t start, uint64_t end) {
  while (start < end) {
    MappedArea area;
    if (FindMappedArea(start, &area) != 0 || area.start > start) return false;
    if (!IsPartOf(region, area, start) || !area.writable) return false;
    start = area.end;
  }
  return true;
}

// Calls visit(piece start, piece length) for what is still mapped of the region.
template <typename Visit>
void ForEachMappedPiece(const Region& region, Visit visit) {
  const uint64_t end = region.start + region.length;
  for (uint64_t at = region.start; at < end;) {
    MappedArea area;
    if (FindMappedArea(at, &area) != 0) return;
    const uint64_t from = area.start > at ? area.start : at;
    const uint64_t to = area.end < end ? area.end : end;
    if (from >= end) return;
    if (IsPartOf(region, area, from)) visit(from, to - from);
    at = to > at ? to : area.end;
  }
}

bool IsMappedAnywhere(const Region& region) {
  bool mapped = false;
  ForEachMappedPiece(region, [&](uint64_t, uint64_t) { mapped = true; });
  return mapped;
}

// The daemon's part ends. The memory stays as it is: ours alone now.
void Retire(Region* region) {
  if (region->handle == 0) return;
  region->session->CallDestroy(ROCEGW_MSG_DESTROY_REGION, region->handle);
  region->handle = 0;
}

void Unlink(Region* region) {
  for (Region** link = &g_regions; *link != nullptr; link = &(*link)->next) {
    if (*link != region) continue;
    *link = region->next;
    break;
  }
  --g_region_count;
  RawClose(region->memfd);
  region->session->Release();
  free(region);
}

// Forgets regions that nobody uses and nothing shows any more, and lets go of idle ones beyond what
// is worth keeping. A region that is still mapped stays in the list, for fork and madvise, though
// the daemon has forgotten it.
void Sweep(uint64_t most_idle) {
  uint64_t idle = 0;
  for (Region* region = g_regions; region != nullptr;) {
    Region* next = region->next;
    if (region->references == 0) {
      if (!IsMappedAnywhere(*region)) {
        Retire(region);
        Unlink(region);
      } else if (region->handle != 0) {
        idle += region->length;
        if (idle > most_idle) Retire(region);
      }
    }
    region = next;
  }
}

// Only memory where nobody can notice: private, anonymous, ordinary, and nobody's stack.
bool MayMove(uint64_t start, uint64_t end) {
  const auto own_stack = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  const auto own_errno = reinterpret_cast<uint64_t>(&errno);
  for (const uint64_t own : {own_stack, own_errno}) {
    if (own >= start && own < end) return false;
  }
  for (uint64_t at = start; at < end;) {
    MappedArea area;
    if (FindMappedArea(at, &area) != 0 || area.start > at) return false;
    if (area.shared || area.inode != 0 || area.special || !area.readable || !area.writable) {
      return false;
    }
    // A thread's stack begins above a page that cannot be touched.
    MappedArea below;
    if (area.start != 0 && FindMappedArea(area.start - 1, &below) == 0 &&
        below.start < area.start && !below.readable) {
      return false;
    }
    at = area.end;
  }
  return HasOrdinaryFlags(start, end);
}

bool Identify(int memfd, Region* region) {
  struct statx about = {};
  if (RawSyscall(SYS_statx, memfd, "", AT_EMPTY_PATH, STATX_INO | STATX_SIZE, &about) != 0) {
    return false;
  }
  region->inode = about.stx_ino;
  region->device_major = about.stx_dev_major;
  region->device_minor = about.stx_dev_minor;
  return about.stx_size >= region->length;
}

Region* AskForRegion(Session* session, uint64_t start, uint64_t end) {
  auto* region = MakeObject<Region>();
  if (region == nullptr) return nullptr;
  region->session = session;
  region->start = start;
  region->length = end - start;
  rocegw_create_region request = {};
  request.address = start;
  request.length = end - start;
  rocegw_object_reply reply;
  int memfd = -1;
  int error = session->Call(ROCEGW_MSG_CREATE_REGION, &request, &reply, &memfd);
  if (error == ENOMEM) {
    Sweep(0);  // idle regions count against the same limit
    error = session->Call(ROCEGW_MSG_CREATE_REGION, &request, &reply, &memfd);
  }
  region->memfd = MoveAside(memfd);
  if (error != 0 || memfd < 0 || !Identify(region->memfd, region)) {
    if (error == 0) session->CallDestroy(ROCEGW_MSG_DESTROY_REGION, reply.handle);
    if (memfd >= 0) RawClose(region->memfd);
    free(region);
    return nullptr;
  }
  region->handle = reply.handle;
  return region;
}

Region* Make(Session* session, uint64_t start, uint64_t end) {
  const int userfault = OpenUserfault(session->userfaultfd_device());
  if (userfault < 0) return nullptr;
  Region* region = AskForRegion(session, start, end);
  if (region == nullptr) {
    RawClose(userfault);
    return nullptr;
  }
  const MoveResult result = MovePages(userfault, start, end - start, region->memfd);
  RawClose(userfault);
  if (result == MoveResult::kNothingMoved) {
    session->CallDestroy(ROCEGW_MSG_DESTROY_REGION, region->handle);
    RawClose(region->memfd);
    free(region);
    return nullptr;
  }
  session->AddReference();
  region->next = g_regions;
  g_regions = region;
  ++g_region_count;
  if (result == MoveResult::kPartlyMoved) {
    Retire(region);
    return nullptr;
  }
  Debug("moved %llu KiB at %#llx onto the gateway's memory",
        static_cast<unsigned long long>(region->length >> 10),
        static_cast<unsigned long long>(start));
  return region;
}

Region* FindIntact(Session* session, uint64_t start, uint64_t end) {
  for (Region* region = g_regions; region != nullptr; region = region->next) {
    if (region->session == session && region->handle != 0 && Covers(*region, start, end) &&
        IsIntact(*region, start, end)) {
      return region;
    }
  }
  return nullptr;
}

}  // namespace

Region* RemapForRegistration(Session* session, uint64_t address, uint64_t length) {
  const Mode mode = ModeOf(session);
  if (mode == Mode::kOff) return nullptr;
  if (mode == Mode::kAuto && length < kWorthwhile) return nullptr;
  const uint64_t page = PageSize();
  const uint64_t start = address & ~(page - 1);
  const uint64_t end = (address + length + page - 1) & ~(page - 1);
  if (end <= start) return nullptr;
  pthread_mutex_lock(&g_lock);
  Region* region = FindIntact(session, start, end);
  if (region == nullptr) {
    Sweep(kMostIdle);
    if (MayMove(start, end)) region = Make(session, start, end);
  }
  if (region != nullptr) ++region->references;
  pthread_mutex_unlock(&g_lock);
  return region;
}

void ReleaseRegion(Region* region) {
  pthread_mutex_lock(&g_lock);
  if (--region->references == 0) Sweep(kMostIdle);
  pthread_mutex_unlock(&g_lock);
}

uint32_t RegionHandle(const Region* region) { return region->handle; }

uint64_t RegionOffset(const Region* region, uint64_t address) { return address - region->start; }

bool AnyRegions() { return __atomic_load_n(&g_region_count, __ATOMIC_RELAXED) != 0; }

bool ForEachRemappedPiece(uint64_t start, uint64_t end, int (*visit)(uint64_t, uint64_t),
                          int* result) {
  bool any = false;
  pthread_mutex_lock(&g_lock);
  for (Region* region = g_regions; region != nullptr; region = region->next) {
    if (region->start >= end || region->start + region->length <= start) continue;
    ForEachMappedPiece(*region, [&](uint64_t piece, uint64_t length) {
      const uint64_t from = piece > start ? piece : start;
      const uint64_t to = piece + length < end ? piece + length : end;
      if (from >= to) return;
      any = true;
      const int error = visit(from, to - from);
      if (error != 0) *result = error;
    });
  }
  pthread_mutex_unlock(&g_lock);
  return any;
}

void LockRegions() { pthread_mutex_lock(&g_lock); }
void UnlockRegions() { pthread_mutex_unlock(&g_lock); }

void MakeRegionsPrivateInChild() {
  for (Region* region = g_regions; region != nullptr; region = region->next) {
    ForEachMappedPiece(*region, [&](uint64_t piece, uint64_t length) {
      RawMap(reinterpret_cast<void*>(piece), length, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_FIXED, region->memfd, piece - region->start);
    });
  }
  // The child has its own memory now; its registrations are dead, but will still be taken away one
  // by one.
  for (Region* region = g_regions; region != nullptr; region = region->next) {
    RawClose(region->memfd);
    region->memfd = -1;
    region->inode = 0;
  }
  pthread_mutex_init(&g_lock, nullptr);
}

}  // namespace rocegw::client
