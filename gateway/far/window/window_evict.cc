// SPDX-License-Identifier: Apache-2.0
// Eviction and write-back of a window, by the handling thread.
#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gateway/far/window/window.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kInactivePart = 4;  // a resident page in so many is inactive
constexpr int kDropLocked = 24;        // MADV_DONTNEED_LOCKED, which came with Linux 5.18

}  // namespace

struct Window::WriteBack {
  std::mutex mutex;
  std::condition_variable ended;
  size_t pending = 0;
  struct Run {
    WriteBack* owner = nullptr;
    uint64_t page = 0;
    uint64_t pages = 0;
    int status = 0;
  };
  std::vector<Run> runs;

  static void OnDone(void* argument, int status) {
    auto* run = static_cast<Run*>(argument);
    WriteBack& owner = *run->owner;
    const std::lock_guard lock(owner.mutex);
    run->status = status;
    if (--owner.pending == 0) owner.ended.notify_one();
  }
};

// Evicts until so many more pages may be read.
void Window::MakeRoom(uint64_t pages) {
  for (;;) {
    std::vector<uint64_t> victims;
    std::vector<uint64_t> dirty;
    size_t evicted = 0;
    {
      const std::lock_guard lock(mutex_);
      if (pages_.used() + pages <= most_resident_) return;
      if (inactive_ == nullptr) {
        victims = pages_.TakeVictims(kEvictedAtOnce);
        for (const uint64_t page : victims) {
          if (pages_.state(page) != ResidentPages::State::kDirty) continue;
          faults_.Protect(AddressOf(page), kPage);
          dirty.push_back(page);
        }
      } else {
        // Pages that become inactive now have until the next call to be used again.
        if (pages_.inactive() == 0) Deactivate();
        evicted = TakeOutInactive(pages_.used() + pages - most_resident_, dirty);
        victims = dirty;
        Deactivate();
      }
      if (evicted != 0) changed_.notify_all();
    }
    if (!victims.empty()) {
      if (inactive_ == nullptr) CopyPages(dirty);
      evicted += FinishEviction(victims, WriteBackPages(dirty));
    }
    // All are being read, or are pinned or locked, or no donor takes them: the window grows.
    if (evicted == 0) return;
  }
}

// Takes the pages that were not used for longest out of the window and keeps them for a while, so
// that the next use of them is seen. A page that the kernel has pinned stays, since a device may
// write to it, or read it again after a store. With the lock.
void Window::Deactivate() {
  if (places_filled_) DropPlaces(free_places_);
  places_filled_ = false;
  // Most of what is resident has to be in the window: what was read ahead is not used yet.
  const uint64_t wanted = std::min(
      std::max<uint64_t>(most_resident_ / kInactivePart, 2 * kEvictedAtOnce), pages_.used() / 2);
  // A few at a time: threads wait meanwhile.
  for (int batch = 0; batch < 2 && pages_.inactive() < wanted; batch++) {
    const size_t most =
        std::min<uint64_t>({kEvictedAtOnce, wanted - pages_.inactive(), free_places_.size()});
    bool any = false;
    for (const uint64_t page : pages_.TakeVictims(most)) {
      const uint32_t place = free_places_.back();
      if (!faults_.Move(AddressOf(page), reinterpret_cast<uintptr_t>(AtPlace(place)))) {
        pages_.Kept(page);
        continue;
      }
      free_places_.pop_back();
      pages_.Deactivated(page, place);
      any = true;
    }
    if (!any) return;
  }
}

// Evicts so many inactive pages, or a few more, so that adjacent ones are written back together.
// Dirty ones are copied for that. Returns how many others are evicted. With the lock.
size_t Window::TakeOutInactive(uint64_t needed, std::vector<uint64_t>& dirty) {
  size_t evicted = 0;
  std::vector<uint32_t> places;
  const uint64_t most =
      std::min<uint64_t>(kEvictedAtOnce, std::max(needed, pages_.inactive() / kInactivePart));
  for (const uint64_t page : pages_.TakeInactive(most)) {
    places.push_back(pages_.place(page));
    if (pages_.IsDirty(page)) {
      std::memcpy(outgoing_ + dirty.size() * kPage, AtPlace(places.back()), kPage);
      pages_.Evicting(page);
      dirty.push_back(page);
    } else {
      pages_.Evicted(page);
      counts_.evicted++;
      evicted++;
    }
  }
  free_places_.insert(free_places_.end(), places.begin(), places.end());
  DropPlaces(std::move(places));
  return evicted;
}

// Gives the memory of these places back, adjacent ones together; also when the program has locked
// all its memory.
void Window::DropPlaces(std::vector<uint32_t> places) {
  std::sort(places.begin(), places.end());
  for (size_t first = 0; first < places.size();) {
    size_t end = first + 1;
    while (end < places.size() && places[end] == places[end - 1] + 1) end++;
    madvise(AtPlace(places[first]), (end - first) * kPage, kDropLocked);
    first = end;
  }
}

// A thread touches an inactive page. With the lock.
void Window::Reactivate(uint64_t page, bool store) {
  const bool dirty = store || pages_.IsDirty(page);
  const uint32_t place = pages_.place(page);
  faults_.Fill(AddressOf(page), AtPlace(place), kPage, !dirty);
  pages_.Reactivated(page, dirty);
  DropPlaces({place});
  free_places_.push_back(place);
  counts_.reactivated++;
}

size_t Window::FinishEviction(const std::vector<uint64_t>& victims,
                              const std::vector<uint64_t>& failed) {
  const std::lock_guard lock(mutex_);
  size_t number = 0;  // number of the page's copy
  size_t evicted = 0;
  for (const uint64_t page : victims) {
    const bool moved = pages_.state(page) == ResidentPages::State::kEvicting;
    const uint8_t* copy = outgoing_ + (moved ? number++ : 0) * kPage;
    const bool has_failed = std::binary_search(failed.begin(), failed.end(), page);
    if (moved && has_failed) {
      faults_.Fill(AddressOf(page), copy, kPage, false);
      pages_.Returned(page);
      continue;
    }
    // The page was discarded, or has left the window.
    if (!moved && !pages_.IsResident(page)) continue;
    // Only this thread lifts the protection: nothing was stored since the page was written. A page
    // that the kernel keeps (mlock) stays.
    if (!moved && (has_failed || madvise(At(page), kPage, MADV_DONTNEED) != 0)) {
      pages_.Kept(page);
      continue;
    }
    pages_.Evicted(page);
    counts_.evicted++;
    evicted++;
  }
  changed_.notify_all();
  return evicted;
}

// The request path may register its buffer, which counts as a store: it never sees the window.
// Pages that were discarded meanwhile are not there.
void Window::CopyPages(const std::vector<uint64_t>& pages) {
  const std::lock_guard lock(mutex_);
  CopyPagesLocked(pages);
}

void Window::CopyPagesLocked(const std::vector<uint64_t>& pages) {
  uint8_t* copy = outgoing_;
  for (const uint64_t page : pages) {
    if (pages_.IsResident(page)) {
      std::memcpy(copy, At(page), kPage);
    } else if (pages_.IsInactive(page)) {
      std::memcpy(copy, AtPlace(pages_.place(page)), kPage);
    }
    copy += kPage;
  }
}

std::vector<uint64_t> Window::WriteBackPages(const std::vector<uint64_t>& pages) {
  WriteBack back;
  for (const uint64_t page : pages) {
    if (!back.runs.empty()) {
      WriteBack::Run& last = back.runs.back();
      if (last.page + last.pages == page) {
        last.pages++;
        continue;
      }
    }
    back.runs.push_back({&back, page, 1, 0});
  }
  back.pending = back.runs.size();
  uint8_t* copy = outgoing_;
  for (WriteBack::Run& run : back.runs) {
    int error = 0;
    do {
      error = dispatcher_.Submit(Direction::kWrite, offset_ + run.page * kPage, copy,
                                 run.pages * kPage, &WriteBack::OnDone, &run);
      if (error == -EAGAIN) poll(nullptr, 0, kTickMs);
    } while (error == -EAGAIN);
    if (error != 0) WriteBack::OnDone(&run, error);
    copy += run.pages * kPage;
  }
  {
    std::unique_lock lock(back.mutex);
    back.ended.wait(lock, [&] { return back.pending == 0; });
  }
  std::vector<uint64_t> failed;
  for (const WriteBack::Run& run : back.runs) {
    for (uint64_t each = 0; each < run.pages && run.status != 0; each++) {
      failed.push_back(run.page + each);
    }
  }
  const std::lock_guard lock(mutex_);
  counts_.written_back += pages.size() - failed.size();
  counts_.write_back_failures += failed.size();
  return failed;
}

// Pages count as clean while they are written back, so that a store meanwhile makes them dirty
// again. Only this thread evicts: it finds none of them before it has learnt what became of them.
int Window::WriteDirty() {
  int result = 0;
  for (uint64_t from = 0;;) {
    std::vector<uint64_t> dirty;
    {
      const std::lock_guard lock(mutex_);
      dirty = pages_.NextDirty(from, kEvictedAtOnce);
      for (const uint64_t page : dirty) {
        if (pages_.IsResident(page)) faults_.Protect(AddressOf(page), kPage);
      }
      CopyPagesLocked(dirty);
      for (const uint64_t page : dirty) pages_.Cleaned(page);
    }
    if (dirty.empty()) return result;
    from = dirty.back() + 1;
    const std::vector<uint64_t> failed = WriteBackPages(dirty);
    if (failed.empty()) continue;
    result = -EIO;
    const std::lock_guard lock(mutex_);
    for (const uint64_t page : failed) {
      if (pages_.IsResident(page) || pages_.IsInactive(page)) pages_.Dirtied(page);
    }
  }
}

}  // namespace rocegw::far
