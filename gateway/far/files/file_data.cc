// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/files/file_data.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace rocegw::far {
namespace {

uint64_t PageUp(uint64_t offset) {
  return (offset + Blocks::kPageBytes - 1) / Blocks::kPageBytes * Blocks::kPageBytes;
}

}  // namespace

class FileData::File {
 public:
  FileMap map;
  uint64_t size = 0;
  timespec modified{};
  uint64_t number = 0;  // its node's; 0: the file has no records
  uint32_t writes = 0;  // in flight
  bool locked = false;  // a call has the file to itself
};

struct FileData::Transfer {
  FileData* owner = nullptr;
  FilePointer file;
  Direction direction = Direction::kRead;
  FileMap::Range range;  // range of the file that the buffer is for
  std::vector<Run> runs;
  std::vector<uint32_t> held;  // blocks
  uint8_t* buffer = nullptr;
  bool pooled = false;
  bool locked = false;  // the transfer has the file to itself
  uint64_t size_after = 0;
  timespec modified{};
  ReadDone read_done;
  WriteDone write_done;
  std::atomic<uint32_t> pending{0};
  std::atomic<int> status{0};
};

FileData::FileData(Space& space, uint64_t size, uint64_t most_in_flight)
    : space_(space),
      most_in_flight_(most_in_flight),
      blocks_(static_cast<uint32_t>(std::min<uint64_t>(size / Blocks::kBytes, UINT32_MAX))) {}

FileData::FilePointer FileData::Make(timespec now) {
  FilePointer file(new File, [this](File* unused) {
    {
      const std::lock_guard lock(mutex_);
      unused->map.Discard(0, UINT64_MAX / Blocks::kPageBytes * Blocks::kPageBytes, blocks_);
      recorded_.erase(unused);
      changed_files_.erase(unused);
    }
    delete unused;
  });
  file->modified = now;
  if (blocks_wanted_) file->map.Track();
  return file;
}

// Records ----------------------------------------------------------------------------------------

void FileData::KeepRecords(std::function<void()> wanted) {
  const std::lock_guard lock(mutex_);
  blocks_wanted_ = std::move(wanted);
  blocks_.KeepFreed();
}

void FileData::Changed(File& file) {
  if (file.number != 0) changed_files_.insert(&file);
}

void FileData::SetNumber(const FilePointer& file, uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (!blocks_wanted_) return;
  file->number = number;
  recorded_.insert(file.get());
  Changed(*file);
}

FileData::FilePointer FileData::Restore(uint64_t number, const KeptFiles::Data& kept) {
  FilePointer file = Make(kept.modified);
  SetNumber(file, number);
  bool restored = kept.size <= kMostFileBytes;
  {
    const std::lock_guard lock(mutex_);
    file->size = kept.size;
    restored = restored && file->map.Restore(kept.blocks, blocks_);
  }
  return restored ? file : nullptr;
}

void FileData::Record(bool everything, RecordWriter& records) {
  const std::lock_guard lock(mutex_);
  for (File* file : everything ? recorded_ : changed_files_) {
    records.Data(file->number, file->size, file->modified);
    file->map.Record(file->number, everything, records);
  }
  changed_files_.clear();
  blocks_.FreedRecorded();
}

void FileData::Committed(bool kept) {
  const std::lock_guard lock(mutex_);
  if (kept) blocks_.FreedCommitted();
  commits_++;
  changed_.notify_all();
}

// Waits for a commit that frees blocks. Returns false when there are none to be freed.
bool FileData::WaitForCommit(std::unique_lock<std::mutex>& lock) {
  if (!blocks_wanted_ || !blocks_.has_kept()) return false;
  // The commit that ends next may have begun before the blocks were freed.
  const uint64_t before = commits_;
  for (uint64_t more = 1; more <= 2 && blocks_.has_kept(); more++) {
    blocks_wanted_();
    changed_.wait(lock, [&] { return commits_ >= before + more; });
  }
  return true;
}

FileData::State FileData::GetState(const FilePointer& file) {
  const std::lock_guard lock(mutex_);
  return {file->size, file->map.blocks(), file->modified};
}

// Waiting ----------------------------------------------------------------------------------------

void FileData::WaitForRoom(std::unique_lock<std::mutex>& lock, uint64_t bytes) {
  changed_.wait(lock, [&] { return in_flight_ == 0 || in_flight_ + bytes <= most_in_flight_; });
}

void FileData::Lock(std::unique_lock<std::mutex>& lock, File& file) {
  changed_.wait(lock, [&] { return !file.locked; });
  file.locked = true;
  changed_.wait(lock, [&] { return file.writes == 0; });
}

void FileData::Unlock(File& file) {
  file.locked = false;
  changed_.notify_all();
}

void FileData::WaitUntilIdle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return transfers_ == 0; });
}

// Transfers --------------------------------------------------------------------------------------

uint8_t* FileData::AllocateBuffer(uint64_t bytes, bool* pooled) {
  uint8_t* buffer = space_.Allocate(PageUp(bytes));
  *pooled = buffer != nullptr;
  if (buffer == nullptr)
    buffer = static_cast<uint8_t*>(std::aligned_alloc(Blocks::kPageBytes, PageUp(bytes)));
  return buffer;
}

void FileData::FreeBuffer(uint8_t* buffer, bool pooled) {
  if (pooled) {
    space_.Free(buffer);
  } else {
    std::free(buffer);
  }
}

// Makes a transfer and holds its blocks. The caller has the lock.
FileData::Transfer* FileData::Begin(const FilePointer& file, Direction direction,
                                    FileMap::Range range, std::vector<Run> runs) {
  auto* transfer = new Transfer;
  transfer->owner = this;
  transfer->file = file;
  transfer->direction = direction;
  transfer->range = range;
  transfer->runs = std::move(runs);
  for (const Run& run : transfer->runs) {
    if (run.space == Run::kHole) continue;
    const uint64_t last = (run.space + run.length - 1) / Blocks::kBytes;
    for (uint64_t block = run.space / Blocks::kBytes; block <= last; block++) {
      blocks_.Hold(static_cast<uint32_t>(block));
      transfer->held.push_back(static_cast<uint32_t>(block));
    }
  }
  in_flight_ += range.end - range.begin;
  transfers_++;
  return transfer;
}

// Submits all runs; the transfer's buffer is there. Without the lock.
void FileData::Start(Transfer* transfer) {
  if (transfer->buffer == nullptr) {
    transfer->status.store(-ENOMEM);
    transfer->runs.clear();
  }
  // The count is larger than that of the runs by one, so that the transfer lives until the last
  // line.
  transfer->pending.store(1 + static_cast<uint32_t>(transfer->runs.size()));
  for (const Run& run : transfer->runs) {
    uint8_t* buffer = transfer->buffer + (run.begin - transfer->range.begin);
    if (run.space == Run::kHole) {
      std::memset(buffer, 0, run.length);
      OnRunDone(transfer, 0);
      continue;
    }
    const int error =
        space_.Submit(transfer->direction, run.space, buffer, run.length, &OnRunDone, transfer);
    if (error != 0) OnRunDone(transfer, error);
  }
  OnRunDone(transfer, 0);
}

void FileData::OnRunDone(void* argument, int status) {
  auto* transfer = static_cast<Transfer*>(argument);
  if (status != 0) transfer->status.store(status);
  if (transfer->pending.fetch_sub(1) == 1) transfer->owner->Finish(transfer);
}

void FileData::Finish(Transfer* transfer) {
  const std::unique_ptr<Transfer> owned(transfer);
  const int status = transfer->status.load();
  const FileMap::Range range = transfer->range;
  const bool is_write = transfer->direction == Direction::kWrite;
  {
    const std::lock_guard lock(mutex_);
    File& file = *transfer->file;
    for (const uint32_t block : transfer->held) blocks_.Release(block);
    in_flight_ -= range.end - range.begin;
    if (status != 0) counts_.failed++;
    if (is_write) {
      if (status == 0) {
        file.map.MarkWritten(range.begin, range.end);
        file.size = std::max(file.size, transfer->size_after);
        file.modified = transfer->modified;
        Changed(file);
      }
      file.writes--;
      if (transfer->locked) file.locked = false;
    }
  }
  if (transfer->read_done) {
    transfer->read_done(status, transfer->buffer, range.end - range.begin);
  }
  FreeBuffer(transfer->buffer, transfer->pooled);
  if (transfer->write_done) transfer->write_done(status);
  transfer->file.reset();  // may take the lock
  const std::lock_guard lock(mutex_);
  transfers_--;
  changed_.notify_all();
}

// Reading and writing ----------------------------------------------------------------------------

void FileData::Read(const FilePointer& file, uint64_t offset, uint64_t length, ReadDone done) {
  Transfer* transfer = nullptr;
  {
    std::unique_lock lock(mutex_);
    WaitForRoom(lock, length);
    counts_.reads++;
    const uint64_t end = std::min(file->size, offset + std::min(length, kMostFileBytes));
    if (offset < end) {
      counts_.read_bytes += end - offset;
      transfer = Begin(file, Direction::kRead, {offset, end}, file->map.RunsToRead(offset, end));
    }
  }
  if (transfer == nullptr) {
    done(0, nullptr, 0);
    return;
  }
  transfer->read_done = std::move(done);
  transfer->buffer = AllocateBuffer(transfer->range.end - transfer->range.begin, &transfer->pooled);
  Start(transfer);
}

void FileData::Write(const FilePointer& file, uint64_t offset, const uint8_t* data, uint64_t length,
                     timespec now, WriteDone done) {
  if (length == 0 || offset > kMostFileBytes || length > kMostFileBytes - offset) {
    done(length == 0 ? 0 : -EFBIG);
    return;
  }
  const uint64_t end = offset + length;
  Transfer* transfer = nullptr;
  {
    std::unique_lock lock(mutex_);
    WaitForRoom(lock, length + 2 * Blocks::kPageBytes);
    FileMap::Range range;
    bool alone = false;
    bool enough = false;
    for (bool waited = false;; waited = true) {
      changed_.wait(lock, [&] { return !file->locked; });
      range = file->map.Padded(offset, end);
      // Zeroes beside the data must not overwrite those of another write of the same page.
      alone = range.begin != offset || range.end != end;
      if (alone) {
        Lock(lock, *file);
        range = file->map.Padded(offset, end);
      }
      enough = file->map.Allocate(range.begin, range.end, blocks_);
      if (enough) break;
      if (alone) Unlock(*file);
      if (waited || !WaitForCommit(lock)) break;
    }
    if (!enough) {
      counts_.no_room++;
    } else {
      Changed(*file);
      counts_.writes++;
      counts_.written_bytes += length;
      file->writes++;
      transfer =
          Begin(file, Direction::kWrite, range, file->map.RunsToWrite(range.begin, range.end));
      transfer->locked = alone;
      transfer->size_after = end;
      transfer->modified = now;
    }
  }
  if (transfer == nullptr) {
    done(-ENOSPC);
    return;
  }
  transfer->write_done = std::move(done);
  const FileMap::Range range = transfer->range;
  transfer->buffer = AllocateBuffer(range.end - range.begin, &transfer->pooled);
  if (transfer->buffer != nullptr) {
    std::memset(transfer->buffer, 0, offset - range.begin);
    std::memcpy(transfer->buffer + (offset - range.begin), data, length);
    std::memset(transfer->buffer + (end - range.begin), 0, range.end - end);
  }
  Start(transfer);
}

void FileData::Flush(WriteDone done) {
  struct Flushing {
    FileData* owner;
    WriteDone done;
  };
  {
    const std::lock_guard lock(mutex_);
    transfers_++;
  }
  space_.Flush(
      [](void* argument, int status) {
        const std::unique_ptr<Flushing> flushing(static_cast<Flushing*>(argument));
        flushing->done(status);
        const std::lock_guard lock(flushing->owner->mutex_);
        if (status != 0) flushing->owner->counts_.failed++;
        flushing->owner->transfers_--;
        flushing->owner->changed_.notify_all();
      },
      new Flushing{this, std::move(done)});
}

// Whole files ------------------------------------------------------------------------------------

// Overwrites a stretch within one written page. The caller has locked the file.
int FileData::WriteZeroes(std::unique_lock<std::mutex>& lock, const FilePointer& file,
                          uint64_t begin, uint64_t end) {
  int result = 0;
  bool ended = false;
  Transfer* transfer =
      Begin(file, Direction::kWrite, {begin, end}, file->map.RunsToWrite(begin, end));
  file->writes++;
  transfer->modified = file->modified;
  transfer->write_done = [&](int status) {
    const std::lock_guard ending(mutex_);
    result = status;
    ended = true;
    changed_.notify_all();
  };
  lock.unlock();
  transfer->buffer = AllocateBuffer(end - begin, &transfer->pooled);
  if (transfer->buffer != nullptr) std::memset(transfer->buffer, 0, end - begin);
  Start(transfer);
  lock.lock();
  changed_.wait(lock, [&] { return ended; });
  return result;
}

// Makes the range read as zero. The caller has locked the file.
int FileData::ZeroLocked(std::unique_lock<std::mutex>& lock, const FilePointer& file,
                         uint64_t begin, uint64_t end) {
  const uint64_t first_whole = PageUp(begin);
  if (begin < first_whole && file->map.IsWritten(begin)) {
    const int error = WriteZeroes(lock, file, begin, std::min(first_whole, end));
    if (error != 0) return error;
  }
  const uint64_t last_whole = end / Blocks::kPageBytes * Blocks::kPageBytes;
  if (end > last_whole && last_whole >= first_whole && file->map.IsWritten(last_whole)) {
    const int error = WriteZeroes(lock, file, last_whole, end);
    if (error != 0) return error;
  }
  if (first_whole < last_whole) file->map.Discard(first_whole, last_whole, blocks_);
  return 0;
}

int FileData::SetSize(const FilePointer& file, uint64_t size, timespec now) {
  if (size > kMostFileBytes) return -EFBIG;
  std::unique_lock lock(mutex_);
  Lock(lock, *file);
  int error = 0;
  if (size < file->size) {
    // Bytes behind the end of a file are zero, so that they are when the file grows again.
    error = ZeroLocked(lock, file, size, PageUp(size));
    if (error == 0) file->map.Discard(PageUp(size), kMostFileBytes + Blocks::kPageBytes, blocks_);
  }
  if (error == 0) {
    file->size = size;
    file->modified = now;
  }
  Changed(*file);
  Unlock(*file);
  return error;
}

int FileData::ZeroTail(const FilePointer& file) {
  std::unique_lock lock(mutex_);
  Lock(lock, *file);
  const int error = ZeroLocked(lock, file, file->size, PageUp(file->size));
  Unlock(*file);
  return error;
}

int FileData::Reserve(const FilePointer& file, uint64_t offset, uint64_t length, bool keep_size,
                      timespec now) {
  if (length == 0) return -EINVAL;
  if (offset > kMostFileBytes || length > kMostFileBytes - offset) return -EFBIG;
  std::unique_lock lock(mutex_);
  Lock(lock, *file);
  bool enough = file->map.Allocate(offset, offset + length, blocks_);
  if (!enough && WaitForCommit(lock)) {
    enough = file->map.Allocate(offset, offset + length, blocks_);
  }
  if (!enough) counts_.no_room++;
  Changed(*file);
  if (enough && !keep_size && offset + length > file->size) {
    file->size = offset + length;
    file->modified = now;
  }
  Unlock(*file);
  return enough ? 0 : -ENOSPC;
}

int FileData::Zero(const FilePointer& file, uint64_t offset, uint64_t length, bool keep_size,
                   timespec now) {
  if (length == 0) return -EINVAL;
  if (offset > kMostFileBytes || length > kMostFileBytes - offset) return -EFBIG;
  std::unique_lock lock(mutex_);
  Lock(lock, *file);
  const int error = ZeroLocked(lock, file, offset, offset + length);
  if (error == 0) {
    if (!keep_size) file->size = std::max(file->size, offset + length);
    file->modified = now;
  }
  Changed(*file);
  Unlock(*file);
  return error;
}

void FileData::SetModified(const FilePointer& file, timespec time) {
  const std::lock_guard lock(mutex_);
  file->modified = time;
  Changed(*file);
}

int64_t FileData::Seek(const FilePointer& file, uint64_t from, bool data) {
  const std::lock_guard lock(mutex_);
  if (from >= file->size) return -ENXIO;
  const uint64_t found =
      data ? file->map.NextData(from, file->size) : file->map.NextHole(from, file->size);
  if (data && found >= file->size) return -ENXIO;
  return static_cast<int64_t>(found);
}

FileData::Counts FileData::GetCounts() {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.blocks = blocks_.count();
  counts.free_blocks = blocks_.free_count();
  counts.in_flight_bytes = in_flight_;
  return counts;
}

}  // namespace rocegw::far
