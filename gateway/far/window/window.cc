// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/window/window.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "gateway/far/window/bus_errors.h"
#include "gateway/far/window/signals_blocked.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kMostInactive = 16384;  // pages
alignas(Window::kPage) constexpr std::array<uint8_t, Window::kPage> kZeroes{};

}  // namespace

// Read of adjacent pages into a buffer, from where they are put into the window.
struct Window::Read {
  Window* window = nullptr;
  uint64_t page = 0;
  uint64_t pages = 0;
  bool store = false;  // a thread waits in order to store to the first page
  uint8_t* buffer = nullptr;
  bool pooled = false;
};

Window::Window(Dispatcher& dispatcher, uint64_t offset, uint64_t bytes, uint64_t resident_bytes,
               Content content, Faults faults)
    : dispatcher_(dispatcher),
      offset_(offset),
      bytes_(bytes),
      handling_(faults),
      most_resident_(resident_bytes / kPage),
      pages_(bytes / kPage, content == Content::kStored) {
  counts_.pages = bytes / kPage;
}

Window::~Window() {
  if (handling_ == Faults::kHere) BusErrors::Remove(this);
  if (handler_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    WakeHandler();
    handler_.join();
  }
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return reads_ == 0; });
  }
  if (memory_ != nullptr) munmap(memory_, bytes_);
  if (inactive_ != nullptr) munmap(inactive_, places_ * kPage);
  std::free(outgoing_);
}

Status Window::Open() {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return {ENOMEM, "no address space"};
  memory_ = static_cast<uint8_t*>(memory);
  madvise(memory, bytes_, MADV_NOHUGEPAGE);
  madvise(memory, bytes_, MADV_DONTFORK);
  outgoing_ = static_cast<uint8_t*>(std::aligned_alloc(kPage, kEvictedAtOnce * kPage));
  if (outgoing_ == nullptr) return {ENOMEM, "no memory"};
  if (Status status = faults_.Open(memory, bytes_, handling_ == Faults::kHere); !status.ok())
    return status;
  if (faults_.can_move()) {
    if (Status status = MapInactive(); !status.ok()) return status;
  }
  wake_fd_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_fd_.valid()) return {errno, "no eventfd"};
  handler_ = std::thread([this] { Handle(); });
  if (handling_ == Faults::kHere && !BusErrors::Add(this, AddressOf(0), AddressOf(0) + bytes_)) {
    return {EMFILE, "too many windows whose faults are handled by the faulting thread"};
  }
  return OkStatus();
}

// Address space for inactive pages, which takes memory as it is used.
Status Window::MapInactive() {
  places_ = std::clamp<uint64_t>(bytes_ / kPage / 4, 2 * kEvictedAtOnce, kMostInactive);
  const uint64_t bytes = places_ * kPage;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return {ENOMEM, "no memory"};
  inactive_ = static_cast<uint8_t*>(memory);
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  madvise(memory, bytes, MADV_DONTFORK);
  for (uint64_t place = places_; place-- > 0;) free_places_.push_back(static_cast<uint32_t>(place));
  return faults_.Register(memory, bytes);
}

void Window::WakeHandler() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_fd_.get(), &one, sizeof one);
}

int Window::Synchronize() {
  const SignalsBlocked blocked;
  std::unique_lock lock(mutex_);
  const uint64_t mine = ++sync_asked_;
  WakeHandler();
  changed_.wait(lock, [&] { return sync_done_ >= mine; });
  return sync_result_;
}

rocegw_memory_map_statistics Window::Statistics() {
  const SignalsBlocked blocked;
  const std::lock_guard lock(mutex_);
  rocegw_memory_map_statistics statistics = counts_;
  statistics.resident = pages_.used();
  return statistics;
}

void Window::Discard(uint64_t begin, uint64_t end) {
  const SignalsBlocked blocked;
  std::unique_lock lock(mutex_);
  for (uint64_t page = begin / kPage; page < end / kPage; page++) {
    changed_.wait(lock, [&] { return !pages_.IsMoving(page); });
    if (pages_.IsInactive(page)) {
      DropPlaces({pages_.place(page)});
      free_places_.push_back(pages_.place(page));
    }
    pages_.Discarded(page);
  }
  // Under the lock, so that the handling thread sees the states and the mapping agree.
  madvise(memory_ + begin, end - begin, MADV_DONTNEED);
}

// The handling thread ----------------------------------------------------------------------------

void Window::Handle() {
  pthread_setname_np(pthread_self(), "rocegw-far-win");
  for (;;) {
    std::deque<std::pair<uint64_t, bool>> single;
    uint64_t sync = 0;
    uint64_t room = 0;
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      if (room_asked_ > room_made_) room = room_asked_;
      single.swap(single_);
      if (sync_asked_ > sync_done_) sync = sync_asked_;
    }
    for (const auto& [page, store] : single) Fetch(page, 1, store);
    if (room != 0) {
      // No more than that: pages that become inactive have to have time to be used again.
      MakeRoom(ResidentPages::kMostReadAhead + Ahead());
      const std::lock_guard lock(mutex_);
      room_made_ = room;
      changed_.notify_all();
    }
    if (sync != 0) {
      const int result = WriteDirty();
      const std::lock_guard lock(mutex_);
      sync_done_ = sync;
      sync_result_ = result;
      changed_.notify_all();
    }
    bool refused = false;
    {
      const std::lock_guard lock(mutex_);
      refused = !single_.empty();
    }
    pollfd ready[] = {{faults_.get(), POLLIN, 0}, {wake_fd_.get(), POLLIN, 0}};
    poll(ready, 2, refused ? kTickMs : -1);
    uint64_t wakeups = 0;
    [[maybe_unused]] const ssize_t got = read(wake_fd_.get(), &wakeups, sizeof wakeups);
    for (const FaultFd::Fault& fault : faults_.Take()) OnFault(fault);
  }
}

void Window::OnFault(const FaultFd::Fault& fault) {
  const auto begin = reinterpret_cast<uintptr_t>(memory_);
  if (fault.address < begin || fault.address >= begin + bytes_) {
    // The kernel fills all memory for mlockall(2), that for moved pages as well.
    faults_.Fill(fault.address / kPage * kPage, kZeroes.data(), kPage, false);
    const std::lock_guard lock(mutex_);
    places_filled_ = true;
    return;
  }
  const uint64_t page = (fault.address - reinterpret_cast<uintptr_t>(memory_)) / kPage;
  {
    const std::lock_guard lock(mutex_);
    counts_.faults++;
    switch (pages_.state(page)) {
      // A read wakes the thread. This thread does not look at faults while it evicts.
      case ResidentPages::State::kReading:
      case ResidentPages::State::kEvicting:
        return;
      case ResidentPages::State::kClean:
      case ResidentPages::State::kDirty:
        if (fault.store) {
          pages_.Dirtied(page);
          faults_.Unprotect(AddressOf(page), kPage);
        } else {
          faults_.Wake(AddressOf(page), kPage);
        }
        return;
      case ResidentPages::State::kInactiveClean:
      case ResidentPages::State::kInactiveDirty:
        Reactivate(page, fault.store);
        return;
      case ResidentPages::State::kLost:
        faults_.Wake(AddressOf(page), kPage);
        return;
      case ResidentPages::State::kHere:
        // The page left the window after the fault, or is about to. A missing one is zero.
        if (fault.protection) {
          faults_.Unprotect(AddressOf(page), kPage);
          faults_.Wake(AddressOf(page), kPage);
        } else {
          faults_.Fill(AddressOf(page), kZeroes.data(), kPage, false);
        }
        return;
      case ResidentPages::State::kAbsent:
        break;
    }
    if (fault.protection) {
      // The page was evicted after the fault: the thread finds it missing.
      faults_.Wake(AddressOf(page), kPage);
      return;
    }
  }
  const bool stored = [&] {
    const std::lock_guard lock(mutex_);
    return pages_.stored(page);
  }();
  if (stored) {
    Fetch(page, ResidentPages::kMostReadAhead, fault.store);
  } else {
    FillZeroes(page, fault.store);
  }
}

// The page, and those behind it while faults are sequential, are zero: nothing is read.
void Window::FillZeroes(uint64_t page, bool store) {
  MakeRoom(ResidentPages::kMostReadAhead);
  const std::lock_guard lock(mutex_);
  if (pages_.state(page) != ResidentPages::State::kAbsent) {
    // The page left the window meanwhile: the thread tries again.
    faults_.Wake(AddressOf(page), kPage);
    return;
  }
  FillZeroesLocked(page, store);
}

void Window::FillZeroesLocked(uint64_t page, bool store) {
  const uint64_t pages = pages_.Fetch(page);
  for (uint64_t each = 0; each < pages; each++) {
    const bool stored_to = store && each == 0;
    pages_.Arrived(page + each, stored_to);
    faults_.Fill(AddressOf(page + each), kZeroes.data(), kPage, !stored_to);
  }
}

// Reads the page, which a thread waits for, and with most > 1 what may be needed next.
void Window::Fetch(uint64_t page, uint64_t most, bool store) {
  auto* read = new Read;
  MakeRoom(most);
  {
    const std::lock_guard lock(mutex_);
    if (most != 1 &&
        (pages_.state(page) != ResidentPages::State::kAbsent || !pages_.stored(page))) {
      // The page was discarded or left the window meanwhile: the thread tries again.
      faults_.Wake(AddressOf(page), kPage);
      delete read;
      return;
    }
    // A page that is read alone is being read already.
    read->pages = most == 1 ? 1 : pages_.Fetch(page);
    reads_++;
  }
  read->window = this;
  read->page = page;
  read->store = store;
  const uint64_t bytes = read->pages * kPage;
  read->buffer = static_cast<uint8_t*>(dispatcher_.Allocate(bytes));
  read->pooled = read->buffer != nullptr;
  if (!read->pooled) read->buffer = static_cast<uint8_t*>(std::aligned_alloc(kPage, bytes));
  const int error = read->buffer == nullptr
                        ? -ENOMEM
                        : dispatcher_.Submit(Direction::kRead, offset_ + page * kPage, read->buffer,
                                             bytes, &OnRead, read);
  if (error == 0) return;  // OnRead deletes the read
  const std::unique_ptr<Read> refused(read);
  // The session's queue is full: the page alone is read a little later.
  if (read->pooled) {
    dispatcher_.Free(read->buffer);
  } else {
    std::free(read->buffer);
  }
  const std::lock_guard lock(mutex_);
  for (uint64_t each = 1; each < read->pages; each++) {
    pages_.Abandoned(page + each);
    faults_.Wake(AddressOf(page + each), kPage);
  }
  single_.emplace_back(page, store);
  reads_--;
  changed_.notify_all();
}

void Window::OnRead(void* argument, int status) {
  const std::unique_ptr<Read> read(static_cast<Read*>(argument));
  Window& window = *read->window;
  const std::unique_ptr<uint8_t, void (*)(uint8_t*)> freed(
      read->pooled ? nullptr : read->buffer, [](uint8_t* buffer) { std::free(buffer); });
  {
    // The mapping and the state of the pages change together: an eviction sees both or none.
    const std::lock_guard lock(window.mutex_);
    for (uint64_t each = 0; each < read->pages; each++) {
      const uint64_t page = read->page + each;
      if (status == 0) {
        const bool store = each == 0 && read->store;
        window.pages_.Arrived(page, store);
        window.faults_.Fill(window.AddressOf(page), read->buffer + each * kPage, kPage, !store);
        window.counts_.read++;
      } else if (read->pages > 1) {
        // Exactly the lost pages fail: those of the read-ahead wait until they are asked for.
        if (each == 0) {
          window.single_.emplace_back(page, read->store);
        } else {
          window.pages_.Abandoned(page);
          window.faults_.Wake(window.AddressOf(page), kPage);
        }
      } else {
        window.pages_.Lost(page);
        window.faults_.Poison(window.AddressOf(page));
        window.counts_.lost++;
      }
    }
  }
  if (read->pooled) window.dispatcher_.Free(read->buffer);
  window.WakeHandler();
  const std::lock_guard lock(window.mutex_);
  window.reads_--;
  window.changed_.notify_all();
}

}  // namespace rocegw::far
