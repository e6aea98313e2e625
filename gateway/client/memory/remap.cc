// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/memory/remap.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "gateway/client/device/objects.h"
#include "gateway/client/memory/memory_map.h"
#include "gateway/client/memory/move_rules.h"
#include "gateway/client/memory/page_mover.h"
#include "gateway/client/memory/regions.h"
#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/process/report.h"
#include "gateway/client/rings/monotonic_time.h"

namespace rocegw::client {

namespace {

constexpr uint64_t kWorthwhile = 1u << 20;  // smaller ranges gain little
// Moving costs as much as several hundred copies: after a few short-lived registrations in a row a
// program's memory is not moved any more.
constexpr int64_t kShortLifeNs = 100'000'000;
constexpr uint32_t kMostShortLives = 8;

// Guarded by the move lock.
IntervalTree<Registration> g_registrations;
Region* g_unused = nullptr;  // regions that had no registration when they were listed
uint32_t g_short_lives = 0;
uint64_t g_moved = 0;                     // registrations
uint64_t g_kept[ROCEGW_KEPT_COUNT] = {};  // by reason

bool Overlap(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end) {
  return a < b_end && b < a_end;
}

// Returns true if the daemon may be writing to some of these pages cross-process: it would finish
// in the old page.
bool IsWritten(uint64_t start, uint64_t end) {
  return g_registrations.FindOverlap(start, end, [&](const Registration& r) {
    if (!r.written || r.session->dead()) return false;
    if (r.region == nullptr) return true;
    return (r.start < r.region->start && Overlap(r.start, r.region->start, start, end)) ||
           (r.end > r.region->end && Overlap(r.region->end, r.end, start, end));
  }) != nullptr;
}

Region* FindIntact(const Session* session, uint64_t start, uint64_t end) {
  if (start >= end) return nullptr;
  return Regions().FindOverlap(start, end, [&](const Region& region) {
    return region.session == session && region.handle != 0 && !region.left &&
           region.start <= start && end <= region.end && IsIntact(region, start, end);
  });
}

bool Identify(Region* region) {
  struct statx about = {};
  if (RawSyscall(SYS_statx, region->memfd, "", AT_EMPTY_PATH, STATX_INO | STATX_SIZE, &about) !=
      0) {
    return false;
  }
  region->inode = about.stx_ino;
  region->device_major = about.stx_dev_major;
  region->device_minor = about.stx_dev_minor;
  return about.stx_size >= region->length();
}

Region* AskForRegion(Session* session, uint64_t start, uint64_t end) {
  auto* region = MakeObject<Region>();
  if (region == nullptr) return nullptr;
  region->session = session;
  region->start = start;
  region->end = end;
  rocegw_create_region request = {};
  request.address = start;
  request.length = end - start;
  rocegw_object_reply reply;
  int memfd = -1;
  const int error = session->Call(ROCEGW_MSG_CREATE_REGION, &request, &reply, &memfd);
  region->memfd = MoveAside(memfd);
  if (error == 0 && memfd >= 0 && Identify(region)) {
    region->handle = reply.handle;
    return region;
  }
  if (error == 0) session->CallDestroy(ROCEGW_MSG_DESTROY_REGION, reply.handle);
  if (memfd >= 0) RawClose(region->memfd);
  free(region);
  return nullptr;
}

// Moves what is still mapped back to private memory. Returns false if a part had to stay.
bool MoveAllBack(Region* region) {
  const uint64_t end = region->end;
  if (!IsShown(*region, region->start, end)) return true;
  if (!HasMemfd(*region)) return false;
  // The same dangers as on the way there; new holders of pages may exist.
  if (RemapModeOfProcess() != RemapMode::kAlways && MayHoldPages()) return false;
  if (!IsTooLargeFor(region->length()) && !HasOrdinaryProperties(region->start, end)) return false;
  const int userfault = OpenUserfault(region->session->userfaultfd_device());
  if (userfault < 0) return false;
  bool all = true;
  ForEachShownPiece(
      *region, region->start, end, [&](uint64_t start, uint64_t length, const MappedArea& area) {
        const int protection = (area.readable ? PROT_READ : 0) | (area.writable ? PROT_WRITE : 0);
        // Checked again under the watch: programs may unmap on another thread.
        all = !area.executable && WatchWrites(userfault, start, length) &&
              ShowsAllOf(*region, start, start + length) &&
              MovePagesBack(userfault, start, length, region->memfd, start - region->start,
                            protection, !region->has_children, TreeGuard()) == length &&
              all;
      });
  RawClose(userfault);
  return all;
}

// Lists a region for Sweep. Programs have very many regions, of which few are unused.
void ListUnused(Region* region) {
  if (region->listed) return;
  region->listed = true;
  region->next_unused = g_unused;
  g_unused = region;
}

// Ends a region without registrations. What cannot be moved back stays, without the daemon, until
// it is unmapped.
void Dissolve(Region* region) {
  if (region->handle != 0) {
    region->session->CallDestroy(ROCEGW_MSG_DESTROY_REGION, region->handle);
    region->handle = 0;
  }
  if (MoveAllBack(region)) {
    RemoveRegion(region);
  } else {
    region->left = true;
    ListUnused(region);
    Debug("%llu KiB at %#llx stay on pages of their own memfd",
          static_cast<unsigned long long>(region->length() >> 10),
          static_cast<unsigned long long>(region->start));
  }
}

// Dissolves unused regions, unless a cross-process copy may be using them; removes unmapped ones.
void Sweep() {
  Region* region = g_unused;
  g_unused = nullptr;
  while (region != nullptr) {
    Region* const next = region->next_unused;
    region->listed = false;
    if (region->references == 0 && !region->inherited) {
      if (region->left ? !IsShown(*region, region->start, region->end)
                       : !IsWritten(region->start, region->end)) {
        region->left ? RemoveRegion(region) : Dissolve(region);
      } else {
        ListUnused(region);
      }
    }
    region = next;
  }
}

uint32_t Make(Session* session, uint64_t start, uint64_t end, Region** made) {
  const int userfault = OpenUserfault(session->userfaultfd_device());
  if (userfault < 0) return ROCEGW_KEPT_NO_USERFAULTFD;
  Region* region = AskForRegion(session, start, end);
  if (region == nullptr) {
    RawClose(userfault);
    return ROCEGW_KEPT_REFUSED;
  }
  AddRegion(region);
  const int64_t begun = MonotonicNs();
  const bool ready = WatchWrites(userfault, start, end - start) && IsPlainMemory(start, end);
  const uint64_t moved =
      ready ? MovePages(userfault, start, end - start, region->memfd, TreeGuard()) : 0;
  RawClose(userfault);
  if (moved != end - start) {
    Dissolve(region);
    return ROCEGW_KEPT_FAILED;
  }
  region->made_ns = MonotonicNs();
  Debug("moved %llu KiB at %#llx onto the gateway's memory in %llu us",
        static_cast<unsigned long long>(region->length() >> 10),
        static_cast<unsigned long long>(start),
        static_cast<unsigned long long>((region->made_ns - begun) / 1000));
  *made = region;
  return 0;
}

// Returns why [start, end), whole pages, must not become a region; 0: it may.
uint32_t FindObstacle(RemapMode mode, uint64_t start, uint64_t end) {
  if (end <= start) return ROCEGW_KEPT_SMALL;
  if (mode == RemapMode::kAuto && end - start < kWorthwhile) return ROCEGW_KEPT_SMALL;
  if (ShowsRegions(start, end) || IsWritten(start, end)) return ROCEGW_KEPT_IN_USE;
  if (mode == RemapMode::kAuto) {
    if (g_short_lives >= kMostShortLives) return ROCEGW_KEPT_SHORT_LIVED;
    if (IsTooLargeFor(end - start)) return ROCEGW_KEPT_LARGE_PROCESS;
    if (MayHoldPages()) return ROCEGW_KEPT_DEVICES;
  }
  return CheckMapping(start, end);
}

uint32_t Place(Registration* r) {
  const RemapMode mode = RemapModeOfProcess();
  if (mode == RemapMode::kNever) return ROCEGW_KEPT_PROCESS;
  if ((r->session->welcome().flags & ROCEGW_WELCOME_REMAP) == 0) return ROCEGW_KEPT_POOL;
  if (!IsHooked()) return ROCEGW_KEPT_UNHOOKED;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t outer_start = r->start & ~(page - 1);
  const uint64_t outer_end = (r->end + page - 1) & ~(page - 1);
  const uint64_t start = (r->start + page - 1) & ~(page - 1);
  const uint64_t end = r->end & ~(page - 1);
  r->region = FindIntact(r->session, outer_start, outer_end);
  if (r->region == nullptr) r->region = FindIntact(r->session, start, end);
  if (r->region == nullptr) {
    Sweep();
    const uint32_t obstacle = FindObstacle(mode, start, end);
    if (obstacle != 0) return obstacle;
    const uint32_t failure = Make(r->session, start, end, &r->region);
    if (failure != 0) return failure;
    r->region->automatic = mode == RemapMode::kAuto;
  }
  ++r->region->references;
  return 0;
}

void DropReference(Registration* r) {
  Region* region = r->region;
  r->region = nullptr;
  if (region == nullptr || --region->references != 0) return;
  ListUnused(region);
  if (region->inherited || !region->automatic) return;
  const bool short_life = MonotonicNs() - region->made_ns < kShortLifeNs;
  g_short_lives = short_life ? g_short_lives + 1 : 0;
}

// For debugging a program's memory.
[[gnu::destructor]] void ReportCounts() {
  uint64_t kept = 0;
  for (const uint64_t count : g_kept) kept += count;
  if (g_moved + kept == 0) return;
  Debug("%llu registrations on memory of the gateway, %llu elsewhere",
        static_cast<unsigned long long>(g_moved), static_cast<unsigned long long>(kept));
  for (uint32_t i = 0; i < ROCEGW_KEPT_COUNT; ++i) {
    if (g_kept[i] == 0) continue;
    Debug("  %llu: %s", static_cast<unsigned long long>(g_kept[i]), rocegw_kept_text(i));
  }
}

}  // namespace

void BeginRegistration(Session* session, uint64_t start, uint64_t length, bool written,
                       Registration* registration) {
  *registration = {Interval{.start = start, .end = start + length}, session, written, nullptr, 0};
  const MoveLock lock;
  registration->kept = Place(registration);
  g_registrations.Insert(registration);
  if (registration->kept == 0) {
    ++g_moved;
    return;
  }
  ++g_kept[registration->kept];
  if (registration->kept == ROCEGW_KEPT_SMALL) return;
  Debug("registered %llu KiB at %#llx stay where they are: %s",
        static_cast<unsigned long long>(length >> 10), static_cast<unsigned long long>(start),
        rocegw_kept_text(registration->kept));
}

void ListRegistration(Session* session, uint64_t start, uint64_t length, bool written,
                      Registration* registration) {
  const MoveLock lock;
  *registration = {Interval{.start = start, .end = start + length}, session, written, nullptr,
                   ROCEGW_KEPT_UNSAID};
  g_registrations.Insert(registration);
  ++g_kept[ROCEGW_KEPT_UNSAID];
}

void LeaveRegion(Registration* registration) {
  const MoveLock lock;
  --g_moved;
  ++g_kept[ROCEGW_KEPT_REFUSED];
  registration->kept = ROCEGW_KEPT_REFUSED;
  DropReference(registration);
  // Not in the list until decided: it is not used cross-process yet.
  const bool written = registration->written;
  registration->written = false;
  Sweep();
  registration->written = written;
}

void EndRegistration(Registration* registration) {
  const MoveLock lock;
  g_registrations.Remove(registration);
  DropReference(registration);
  Sweep();
}

uint32_t RegionHandle(const Registration& registration) {
  return registration.region != nullptr ? registration.region->handle : 0;
}

uint64_t RegionOffset(const Registration& registration) {
  return registration.region != nullptr ? registration.start - registration.region->start : 0;
}

}  // namespace rocegw::client
