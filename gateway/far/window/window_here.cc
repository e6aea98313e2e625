// SPDX-License-Identifier: Apache-2.0
// Faults that the faulting thread handles itself, in its handler of SIGBUS: it reads the page and
// goes on, without a switch to another thread and back. It holds no lock of this library, of the
// verbs library or of malloc at that point, unless one of them touches the window, which the
// program has to see to (rocegw_memory_map.h).
#include <algorithm>
#include <array>

#include "gateway/far/window/bus_errors.h"
#include "gateway/far/window/signals_blocked.h"
#include "gateway/far/window/window.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kMostAhead = 128;  // pages

}  // namespace

uint64_t Window::Ahead() const { return std::min<uint64_t>(kMostAhead, most_resident_ / 8); }

bool Window::HandleHere(uintptr_t address, bool store) {
  const SignalsBlocked blocked;
  const uint64_t page = (address - reinterpret_cast<uintptr_t>(memory_)) / kPage;
  std::unique_lock lock(mutex_);
  counts_.faults++;
  for (;;) {
    switch (pages_.state(page)) {
      case ResidentPages::State::kReading:
      case ResidentPages::State::kEvicting:
        changed_.wait(lock, [&] { return !pages_.IsMoving(page); });
        continue;
      case ResidentPages::State::kClean:
        if (!store && BusErrors::kStoresAreKnown)
          return true;  // another thread has read it meanwhile
        pages_.Dirtied(page);
        [[fallthrough]];
      case ResidentPages::State::kDirty:
        faults_.Unprotect(AddressOf(page), kPage);
        return true;
      case ResidentPages::State::kInactiveClean:
      case ResidentPages::State::kInactiveDirty:
        Reactivate(page, store);
        return true;
      case ResidentPages::State::kLost:
        return false;
      case ResidentPages::State::kHere:
        return true;  // left the window meanwhile
      case ResidentPages::State::kAbsent:
        break;
    }
    if (!HasRoomHere(lock)) continue;
    if (pages_.stored(page)) {
      ReadHere(lock, page, store);
      return true;  // if the page is lost now, the next try raises a SIGBUS of another kind
    }
    FillZeroesLocked(page, store);
    return true;
  }
}

// Asks the handling thread to evict before the window is full, and waits for it when it is. Returns
// false after it has waited, when everything may have changed.
bool Window::HasRoomHere(std::unique_lock<std::mutex>& lock) {
  constexpr uint64_t kNeeded = ResidentPages::kMostReadAhead;
  const auto has_room = [this] { return pages_.used() + kNeeded <= most_resident_; };
  if (pages_.used() + kNeeded + Ahead() > most_resident_ && room_asked_ == room_made_) {
    room_asked_++;
    WakeHandler();
  }
  if (has_room() || room_refused_) {
    room_refused_ = false;
    return true;
  }
  const uint64_t mine = room_asked_;
  changed_.wait(lock, [&] { return has_room() || room_made_ >= mine; });
  // Nothing could be evicted: the window grows.
  room_refused_ = !has_room();
  return false;
}

// Reads the page, which is absent, and what may be needed next.
void Window::ReadHere(std::unique_lock<std::mutex>& lock, uint64_t page, bool store) {
  alignas(kPage) std::array<uint8_t, kPage> own;  // when the session's pool has no room
  uint64_t pages = pages_.Fetch(page);
  reads_++;
  int error = 0;
  for (;;) {
    lock.unlock();
    auto* const pooled = static_cast<uint8_t*>(dispatcher_.Allocate(pages * kPage));
    uint8_t* const buffer = pooled != nullptr ? pooled : own.data();
    const uint64_t read = pooled != nullptr ? pages : 1;
    error =
        dispatcher_.SubmitAndWait(Direction::kRead, offset_ + page * kPage, buffer, read * kPage);
    // The mapping and the state of the pages change together.
    lock.lock();
    for (uint64_t each = 0; each < read && error == 0; each++) {
      const bool stored_to = store && each == 0;
      pages_.Arrived(page + each, stored_to);
      faults_.Fill(AddressOf(page + each), buffer + each * kPage, kPage, !stored_to);
      counts_.read++;
    }
    if (pooled != nullptr) dispatcher_.Free(pooled);
    // Exactly the lost pages fail: those of the read-ahead wait until they are asked for.
    for (uint64_t each = error == 0 ? read : 1; each < pages; each++) {
      pages_.Abandoned(page + each);
    }
    if (error == 0 || pages == 1) break;
    pages = 1;
  }
  if (error != 0) {
    pages_.Lost(page);
    faults_.Poison(AddressOf(page));
    counts_.lost++;
  }
  reads_--;
  changed_.notify_all();
}

}  // namespace rocegw::far
