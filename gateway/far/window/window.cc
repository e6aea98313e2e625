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

#include "gateway/far/window/signals_blocked.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kEvictedAtOnce = 64;  // pages; adjacent ones are written as one
constexpr int kTickMs = 2;               // after which a refused read is tried again
constexpr int kDropLocked = 24;          // MADV_DONTNEED_LOCKED, which came with Linux 5.18
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

Window::Window(Dispatcher& dispatcher, uint64_t offset, uint64_t bytes, uint64_t resident_bytes,
               Content content)
    : dispatcher_(dispatcher),
      offset_(offset),
      bytes_(bytes),
      most_resident_(resident_bytes / kPage),
      pages_(bytes / kPage, content == Content::kStored) {
  counts_.pages = bytes / kPage;
}

Window::~Window() {
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
  if (detached_ != nullptr) munmap(detached_, kEvictedAtOnce * kPage);
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
  if (Status status = faults_.Open(memory, bytes_); !status.ok()) return status;
  if (faults_.can_move()) {
    constexpr uint64_t kBytes = kEvictedAtOnce * kPage;
    void* detached =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (detached == MAP_FAILED) return {ENOMEM, "no memory"};
    detached_ = static_cast<uint8_t*>(detached);
    madvise(detached, kBytes, MADV_NOHUGEPAGE);
    madvise(detached, kBytes, MADV_DONTFORK);
    if (Status status = faults_.Register(detached, kBytes); !status.ok()) return status;
  }
  wake_fd_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_fd_.valid()) return {errno, "no eventfd"};
  handler_ = std::thread([this] { Handle(); });
  return OkStatus();
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
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      single.swap(single_);
      if (sync_asked_ > sync_done_) sync = sync_asked_;
    }
    for (const auto& [page, store] : single) Fetch(page, 1, store);
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
    detached_filled_ = true;
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

// Evicts until so many more pages may be read.
void Window::MakeRoom(uint64_t pages) {
  for (;;) {
    std::vector<uint64_t> victims;
    std::vector<uint64_t> dirty;
    size_t evicted = 0;
    {
      const std::lock_guard lock(mutex_);
      if (pages_.used() + pages <= most_resident_) return;
      if (detached_filled_) madvise(detached_, kEvictedAtOnce * kPage, kDropLocked);
      detached_filled_ = false;
      size_t moved = 0;
      for (const uint64_t page : pages_.TakeVictims(kEvictedAtOnce)) {
        const bool is_dirty = pages_.state(page) == ResidentPages::State::kDirty;
        if (!TakeOut(page, moved, dirty.size())) {
          pages_.Kept(page);
          continue;
        }
        moved++;
        if (is_dirty) dirty.push_back(page);
        if (is_dirty || detached_ == nullptr) {
          victims.push_back(page);
        } else {
          // Nothing is written back: it is missing from here on.
          pages_.Evicted(page);
          counts_.evicted++;
          evicted++;
        }
      }
      // Also when the program has locked all its memory.
      if (moved != 0 && detached_ != nullptr) {
        madvise(detached_, kEvictedAtOnce * kPage, kDropLocked);
      }
      if (evicted != 0) changed_.notify_all();
    }
    if (!victims.empty()) {
      if (detached_ == nullptr) CopyPages(dirty);
      evicted += FinishEviction(victims, WriteBackPages(dirty));
    }
    // All are being read, or are pinned or locked, or no donor takes them: the window grows.
    if (evicted == 0) return;
  }
}

// Takes a page out of the window, so that nothing is stored to it any more: moves it to the
// `number`th detached page. A dirty one is copied to its place among the copies. Returns false for
// a page that the kernel has pinned, which a device may write to, or read again after a store.
// Where pages cannot be moved, a dirty page is protected. With the lock.
bool Window::TakeOut(uint64_t page, size_t number, size_t dirty) {
  const bool is_dirty = pages_.state(page) == ResidentPages::State::kDirty;
  if (detached_ == nullptr) {
    if (is_dirty) faults_.Protect(AddressOf(page), kPage);
    return true;
  }
  uint8_t* to = detached_ + number * kPage;
  if (!faults_.Move(AddressOf(page), reinterpret_cast<uintptr_t>(to))) return false;
  if (is_dirty) {
    std::memcpy(outgoing_ + dirty * kPage, to, kPage);
    pages_.Evicting(page);
  }
  return true;
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
  uint8_t* copy = outgoing_;
  for (const uint64_t page : pages) {
    if (pages_.IsResident(page)) std::memcpy(copy, At(page), kPage);
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

int Window::WriteDirty() {
  int result = 0;
  for (uint64_t from = 0;;) {
    std::vector<uint64_t> dirty;
    {
      const std::lock_guard lock(mutex_);
      dirty = pages_.NextDirty(from, kEvictedAtOnce);
      // A store that comes during the write waits: this thread lifts the protection.
      for (const uint64_t page : dirty) faults_.Protect(AddressOf(page), kPage);
    }
    if (dirty.empty()) return result;
    from = dirty.back() + 1;
    CopyPages(dirty);
    const std::vector<uint64_t> failed = WriteBackPages(dirty);
    if (!failed.empty()) result = -EIO;
    const std::lock_guard lock(mutex_);
    for (const uint64_t page : dirty) {
      const bool written = !std::binary_search(failed.begin(), failed.end(), page);
      if (written && pages_.IsResident(page)) pages_.Cleaned(page);
    }
  }
}

}  // namespace rocegw::far
