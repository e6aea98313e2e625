// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/disk/disk_copy.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "gateway/far/request/arena.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kPage = CopyFile::kPageBytes;
// Adjacent writes that wait become one operation of at most this.
constexpr uint64_t kMostAtOnce = 1 << 20;
// A stretch of zeroes from this length on becomes a hole, which takes no room.
constexpr uint64_t kFewestPunched = 64 << 10;

uint64_t PageUp(uint64_t offset) { return (offset + kPage - 1) / kPage * kPage; }

bool IsZero(const uint8_t* data, uint64_t length) {
  return data[0] == 0 && std::memcmp(data, data + 1, length - 1) == 0;
}

// Reads or writes the whole range, whatever the file does at once. Returns 0 or a negative errno.
int Transfer(CopyFile& file, bool write, uint8_t* buffer, uint64_t length, uint64_t offset) {
  uint64_t at = 0;
  while (at < length) {
    const ssize_t got = write ? file.Write(buffer + at, length - at, offset + at)
                              : file.Read(buffer + at, length - at, offset + at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno != 0 ? -errno : -EIO;
    // The rest must begin at a page. Nothing at all, or the file's end, is an error.
    const uint64_t whole = at + static_cast<uint64_t>(got) == length
                               ? length
                               : (at + static_cast<uint64_t>(got)) / kPage * kPage;
    if (whole == at) return -EIO;
    at = whole;
  }
  return 0;
}

}  // namespace

// Request to the file.
struct DiskCopy::Work {
  enum class Kind : uint8_t { kWrite, kRead, kFlush, kNote };
  Kind kind = Kind::kWrite;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint8_t* data = nullptr;                                     // a write's, in the queue's buffer
  std::shared_ptr<const std::vector<CopyFile::Range>> lost{};  // a note's
};

struct DiskCopy::Entry {
  Work work;
  uint8_t* buffer = nullptr;  // a read's
  WriteDone done;
};

struct DiskCopy::Result {
  int status = 0;
  Pages bad;
};

struct DiskCopy::Shared {
  Shared(std::unique_ptr<CopyFile> copy_file, uint64_t queue_bytes, uint64_t most_at_once)
      : file(std::move(copy_file)),
        page_bytes(PageUp(std::max(most_at_once, kMostAtOnce)) + 2 * kPage),
        arena(queue_bytes),
        bytes(queue_bytes) {}
  ~Shared() {
    if (memory != nullptr) munmap(memory, bytes);
    if (page_buffer != nullptr) munmap(page_buffer, page_bytes);
  }

  int Write(uint64_t offset, uint64_t length);
  int Execute(const Work* works, size_t count);
  Result WritePages(const Work& work);
  std::vector<Result> ExecuteAll(const std::vector<Work>& works);
  std::vector<Work> Take();
  void Settle(const std::vector<Work>& works, const std::vector<Result>& results);
  void FreeData(uint8_t* data) { arena.Free(static_cast<uint64_t>(data - memory)); }

  const std::unique_ptr<CopyFile> file;
  const uint64_t page_bytes;
  uint8_t* page_buffer = nullptr;  // the thread's, for operations of whole pages
  int late_sync_error = 0;         // the thread's: a flush failed after it had been given up

  std::mutex mutex;  // guards the following
  std::condition_variable changed;
  std::deque<Entry> queue;
  std::vector<Entry> run;  // being executed
  bool running = false;
  bool abandoned = false;  // the present operation hangs: its entries fail
  bool failing = false;    // their callbacks, and those of what waited, are being called
  bool stop = false;
  bool ended = false;
  Clock::time_point started;
  Arena arena;
  uint8_t* memory = nullptr;
  const uint64_t bytes;
  Counts counts;
};

DiskCopy::DiskCopy(std::unique_ptr<CopyFile> file, uint64_t queue_bytes, uint64_t most_at_once)
    : shared_(std::make_shared<Shared>(std::move(file), PageUp(queue_bytes), most_at_once)) {}

DiskCopy::~DiskCopy() {
  if (thread_.joinable()) thread_.detach();
}

Status DiskCopy::Start() {
  const auto map = [](uint64_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? static_cast<uint8_t*>(memory) : nullptr;
  };
  shared_->memory = map(shared_->bytes);
  shared_->page_buffer = map(shared_->page_bytes);
  if (shared_->memory == nullptr || shared_->page_buffer == nullptr) {
    return {ENOMEM, "no memory for the queue of the disk copy"};
  }
  thread_ = std::thread([shared = shared_] { Run(shared); });
  return OkStatus();
}

bool DiskCopy::up() const {
  const std::lock_guard lock(shared_->mutex);
  return !shared_->abandoned && !shared_->stop;
}

uint8_t* DiskCopy::Allocate(uint64_t bytes) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->abandoned || shared_->stop) return nullptr;
  const auto offset = shared_->arena.Allocate(bytes);
  return offset ? shared_->memory + *offset : nullptr;
}

void DiskCopy::Free(uint8_t* data) {
  const std::lock_guard lock(shared_->mutex);
  shared_->FreeData(data);
}

// Queues the entry, or fails it when the copy is not up.
void DiskCopy::Enter(Shared& shared, Entry entry) {
  {
    const std::lock_guard lock(shared.mutex);
    if (!shared.abandoned && !shared.stop) {
      if (entry.work.kind == Work::Kind::kWrite) shared.counts.queued_bytes += entry.work.length;
      shared.queue.push_back(std::move(entry));
      shared.changed.notify_all();
      return;
    }
    if (entry.work.data != nullptr) shared.FreeData(entry.work.data);
  }
  entry.done(kNoResult, {});
}

void DiskCopy::Write(uint64_t offset, uint8_t* data, uint64_t length, WriteDone done) {
  Enter(*shared_, {{Work::Kind::kWrite, offset, length, data}, nullptr, std::move(done)});
}

void DiskCopy::Read(uint64_t offset, uint8_t* buffer, uint64_t length, Done done) {
  Enter(*shared_, {{Work::Kind::kRead, offset, length, nullptr},
                   buffer,
                   [done = std::move(done)](int status, const Pages& /*bad*/) { done(status); }});
}

void DiskCopy::Flush(Done done) {
  Enter(*shared_, {{Work::Kind::kFlush, 0, 0, nullptr},
                   nullptr,
                   [done = std::move(done)](int status, const Pages& /*bad*/) { done(status); }});
}

void DiskCopy::NoteLost(std::vector<CopyFile::Range> lost, Done done) {
  Work work{Work::Kind::kNote, 0, 0, nullptr};
  work.lost = std::make_shared<const std::vector<CopyFile::Range>>(std::move(lost));
  Enter(*shared_, {std::move(work), nullptr,
                   [done = std::move(done)](int status, const Pages& /*bad*/) { done(status); }});
}

// Writes the bytes in the page buffer from (offset % page) on; pages at the edges are read first.
int DiskCopy::Shared::Write(uint64_t offset, uint64_t length) {
  const uint64_t begin = offset / kPage * kPage;
  const uint64_t end = PageUp(offset + length);
  uint8_t* data = page_buffer + (offset - begin);
  if (begin == offset && end == offset + length && length >= kFewestPunched &&
      IsZero(data, length) && file->Punch(offset, length) == 0) {
    return 0;
  }
  alignas(kPage) uint8_t edge[kPage];
  if (begin != offset) {
    if (const int error = Transfer(*file, false, edge, kPage, begin); error != 0) return error;
    std::memcpy(page_buffer, edge, offset - begin);
  }
  if (end != offset + length) {
    const uint64_t last = end - kPage;
    if (const int error = Transfer(*file, false, edge, kPage, last); error != 0) return error;
    const uint64_t used = offset + length - last;
    std::memcpy(page_buffer + (last - begin) + used, edge + used, kPage - used);
  }
  return Transfer(*file, true, page_buffer, end - begin, begin);
}

// Executes adjacent writes, a read or a flush. A read leaves its bytes in the page buffer.
int DiskCopy::Shared::Execute(const Work* works, size_t count) {
  const uint64_t begin = works->offset / kPage * kPage;
  switch (works->kind) {
    case Work::Kind::kFlush: {
      const int error = file->Sync() == 0 ? 0 : -errno;
      const int late = std::exchange(late_sync_error, 0);
      return error != 0 ? error : late;
    }
    case Work::Kind::kNote:
      return file->SetLost(*works->lost) == 0 ? 0 : -errno;
    case Work::Kind::kRead:
      return Transfer(*file, false, page_buffer, PageUp(works->offset + works->length) - begin,
                      begin);
    case Work::Kind::kWrite:
      break;
  }
  uint64_t length = 0;
  for (size_t each = 0; each < count; each++) {
    std::memcpy(page_buffer + (works->offset - begin) + length, works[each].data,
                works[each].length);
    length += works[each].length;
  }
  return Write(works->offset, length);
}

// Writes page by page what could not be written at once, so that exactly the bad pages fail.
DiskCopy::Result DiskCopy::Shared::WritePages(const Work& work) {
  Result result;
  for (uint64_t at = 0; at < work.length;) {
    const uint64_t page = (work.offset + at) / kPage * kPage;
    const uint64_t length = std::min(work.length - at, page + kPage - (work.offset + at));
    bool give_up = false;
    {
      const std::lock_guard lock(mutex);
      give_up = abandoned;
    }
    const Work part{Work::Kind::kWrite, work.offset + at, length, work.data + at};
    if (const int error = give_up ? kNoResult : Execute(&part, 1); error != 0) {
      result.status = error;
      result.bad.push_back(page);
    }
    at += length;
  }
  return result;
}

// Executes what Take has returned.
std::vector<DiskCopy::Result> DiskCopy::Shared::ExecuteAll(const std::vector<Work>& works) {
  const int status = Execute(works.data(), works.size());
  std::vector<Result> results(works.size(), {status, {}});
  const Work& first = works.front();
  if (status == 0 || first.kind != Work::Kind::kWrite) return results;
  if (works.size() == 1 && first.offset / kPage == (first.offset + first.length - 1) / kPage) {
    return results;
  }
  for (size_t each = 0; each < works.size(); each++) results[each] = WritePages(works[each]);
  return results;
}

// Takes the first entry, and the adjacent writes behind it when it is a write. With the lock.
std::vector<DiskCopy::Work> DiskCopy::Shared::Take() {
  std::vector<Work> works;
  uint64_t length = 0;
  do {
    works.push_back(queue.front().work);
    length += works.back().length;
    run.push_back(std::move(queue.front()));
    queue.pop_front();
  } while (!queue.empty() && works.back().kind == Work::Kind::kWrite &&
           queue.front().work.kind == Work::Kind::kWrite &&
           queue.front().work.offset == works.back().offset + works.back().length &&
           length + queue.front().work.length <= kMostAtOnce);
  return works;
}

// Counts what was executed, frees its data and gives reads their bytes. With the lock.
void DiskCopy::Shared::Settle(const std::vector<Work>& works, const std::vector<Result>& results) {
  for (size_t each = 0; each < works.size(); each++) {
    const Work& work = works[each];
    const int status = results[each].status;
    counts.errors += status != 0 ? 1 : 0;
    switch (work.kind) {
      case Work::Kind::kWrite:
        FreeData(work.data);
        counts.queued_bytes -= work.length;
        if (status == 0) counts.written_bytes += work.length;
        break;
      case Work::Kind::kRead:
        if (status != 0 || abandoned) break;
        std::memcpy(run[each].buffer, page_buffer + work.offset % kPage, work.length);
        counts.read_bytes += work.length;
        break;
      case Work::Kind::kFlush:
        counts.syncs++;
        if (abandoned) late_sync_error = status;
        break;
      case Work::Kind::kNote:
        break;
    }
  }
}

void DiskCopy::Run(const std::shared_ptr<Shared>& shared) {
  pthread_setname_np(pthread_self(), "rocegw-far-disk");
  Shared& state = *shared;
  std::unique_lock lock(state.mutex);
  for (;;) {
    state.changed.wait(lock, [&] { return !state.queue.empty() || state.stop; });
    if (state.queue.empty()) break;
    const std::vector<Work> works = state.Take();
    state.running = true;
    state.started = Clock::now();
    lock.unlock();
    const std::vector<Result> results = state.ExecuteAll(works);
    lock.lock();
    state.running = false;
    state.Settle(works, results);
    std::vector<Entry> finished;
    finished.swap(state.run);
    if (state.abandoned) {
      state.changed.wait(lock, [&] { return !state.failing; });
      state.abandoned = false;
      continue;
    }
    lock.unlock();
    for (size_t each = 0; each < finished.size(); each++) {
      finished[each].done(results[each].status, results[each].bad);
    }
    finished.clear();
    lock.lock();
  }
  state.ended = true;
  state.changed.notify_all();
}

void DiskCopy::FailIfHung(Clock::duration timeout) {
  std::vector<WriteDone> failed;
  {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->running || shared_->abandoned || Clock::now() - shared_->started < timeout) {
      return;
    }
    shared_->abandoned = true;
    shared_->failing = true;
    shared_->counts.hangs++;
    // The thread frees the data of its run when the operation returns.
    for (Entry& entry : shared_->run) failed.push_back(std::move(entry.done));
    for (Entry& entry : shared_->queue) {
      if (entry.work.data != nullptr) {
        shared_->FreeData(entry.work.data);
        shared_->counts.queued_bytes -= entry.work.length;
      }
      failed.push_back(std::move(entry.done));
    }
    shared_->counts.errors += failed.size();
    shared_->queue.clear();
  }
  for (const WriteDone& done : failed) done(kNoResult, {});
  const std::lock_guard lock(shared_->mutex);
  shared_->failing = false;
  shared_->changed.notify_all();
}

void DiskCopy::Stop(Clock::duration timeout) {
  if (!thread_.joinable()) return;
  Flush([](int /*status*/) {});
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
    shared_->changed.notify_all();
  }
  for (;;) {
    {
      std::unique_lock lock(shared_->mutex);
      shared_->changed.wait_for(lock, std::chrono::milliseconds(50),
                                [this] { return shared_->ended; });
      if (shared_->ended) break;
    }
    FailIfHung(timeout);
    const std::lock_guard lock(shared_->mutex);
    if (shared_->abandoned) break;
  }
  const bool ended = [this] {
    const std::lock_guard lock(shared_->mutex);
    return shared_->ended;
  }();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

DiskCopy::Counts DiskCopy::GetCounts() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->counts;
}

}  // namespace rocegw::far
