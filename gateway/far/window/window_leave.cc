// SPDX-License-Identifier: Apache-2.0
// Pages that leave a window and join it again. A page that leaves stays where it is: its thread, a
// device that has pinned it, and stores of other threads meanwhile find the same page.
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "gateway/far/window/signals_blocked.h"
#include "gateway/far/window/window.h"

namespace rocegw::far {

int Window::Leave(uint64_t begin, uint64_t end) {
  const SignalsBlocked blocked;
  constexpr uint64_t kMost = ResidentPages::kMostReadAhead;
  const std::unique_ptr<uint8_t, void (*)(uint8_t*)> buffer(
      static_cast<uint8_t*>(std::aligned_alloc(kPage, kMost * kPage)),
      [](uint8_t* memory) { std::free(memory); });
  if (buffer == nullptr) return -ENOMEM;
  uint64_t most = kMost;
  for (uint64_t page = begin / kPage; page < end / kPage;) {
    uint64_t pages = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !pages_.IsMoving(page); });
      if (pages_.state(page) == ResidentPages::State::kLost) return -EIO;
      if (pages_.IsInactive(page)) Reactivate(page, false);
      pages = pages_.FetchStored(page, end / kPage, most);
      if (pages == 0) {
        pages_.Left(page++);
        continue;
      }
    }
    const int error = ReadLeaving(page, pages, buffer.get());
    if (error == 0) {
      page += pages;
    } else if (pages > 1) {
      most = 1;  // exactly the lost pages fail
    } else {
      return -EIO;
    }
  }
  // Pages that the kernel cannot take off the descriptor (ENOMEM) are handled as before, except
  // that none of them is evicted.
  faults_.Unregister(memory_ + begin, end - begin);
  madvise(memory_ + begin, end - begin, MADV_DOFORK);
  return 0;
}

int Window::ReadLeaving(uint64_t page, uint64_t pages, uint8_t* buffer) {
  const int error =
      dispatcher_.SubmitAndWait(Direction::kRead, offset_ + page * kPage, buffer, pages * kPage);
  const std::lock_guard lock(mutex_);
  for (uint64_t each = 0; each < pages; each++) {
    const uintptr_t address = AddressOf(page + each);
    if (error == 0) {
      faults_.Fill(address, buffer + each * kPage, kPage, false);
      pages_.Left(page + each);
      counts_.read++;
    } else if (pages > 1) {
      pages_.Abandoned(page + each);
      faults_.Wake(address, kPage);
    } else {
      pages_.Lost(page);
      faults_.Poison(address);
      counts_.lost++;
    }
  }
  changed_.notify_all();
  return error;
}

bool Window::Rejoin(uint64_t begin, uint64_t end) {
  const SignalsBlocked blocked;
  const std::lock_guard lock(mutex_);
  if (!faults_.Register(memory_ + begin, end - begin).ok()) return false;
  madvise(memory_ + begin, end - begin, MADV_NOHUGEPAGE);
  madvise(memory_ + begin, end - begin, MADV_DONTFORK);
  for (uint64_t page = begin / kPage; page < end / kPage; page++) pages_.Rejoined(page);
  return true;
}

}  // namespace rocegw::far
