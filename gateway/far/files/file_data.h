// SPDX-License-Identifier: Apache-2.0
// Data of files that live in a space. Reads and writes are asynchronous; calls that change which
// pages a file has (truncation, holes, the first write of a part of a page) have the file to
// themselves and wait for the file's writes in flight. Every wait ends when transfers end, which
// the session bounds. Any thread; one lock, never held while data is copied or transferred.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "gateway/far/files/blocks.h"
#include "gateway/far/files/file_map.h"
#include "gateway/far/files/space.h"

namespace rocegw::far {

class FileData {
 public:
  // Data of a file; blocks are freed with the last reference.
  class File;
  using FilePointer = std::shared_ptr<File>;

  struct State {
    uint64_t size = 0;
    uint64_t blocks = 0;  // each of Blocks::kBytes
    timespec modified{};
  };
  struct Counts {
    uint64_t blocks = 0, free_blocks = 0;
    uint64_t in_flight_bytes = 0;
    uint64_t reads = 0, read_bytes = 0, writes = 0, written_bytes = 0;
    uint64_t failed = 0;   // reads and writes with EIO
    uint64_t no_room = 0;  // calls that failed with ENOSPC
  };
  static constexpr uint64_t kMostFileBytes = uint64_t{1} << 50;

  // Uses the first `size` bytes of the space, which outlives this object. At most
  // `most_in_flight` bytes are in transfer, but always one request.
  FileData(Space& space, uint64_t size, uint64_t most_in_flight);

  FilePointer Make(timespec now);
  State GetState(const FilePointer& file);

  // `data` is valid during the call of `done`; `length` ends at the end of the file.
  using ReadDone = std::function<void(int status, const uint8_t* data, uint64_t length)>;
  void Read(const FilePointer& file, uint64_t offset, uint64_t length, ReadDone done);
  // `data` is not used after the call returns.
  using WriteDone = std::function<void(int status)>;
  void Write(const FilePointer& file, uint64_t offset, const uint8_t* data, uint64_t length,
             timespec now, WriteDone done);

  // Calls `done` when all writes that are complete are where the space keeps what it flushes.
  void Flush(WriteDone done);

  // The following return 0 or a negative errno value, and wait.
  int SetSize(const FilePointer& file, uint64_t size, timespec now);
  // Takes blocks for the range, so that writes to it do not fail with ENOSPC.
  int Reserve(const FilePointer& file, uint64_t offset, uint64_t length, bool keep_size,
              timespec now);
  int Zero(const FilePointer& file, uint64_t offset, uint64_t length, bool keep_size, timespec now);

  void SetModified(const FilePointer& file, timespec time);
  // Offset of the next data or hole at or behind `from`; -ENXIO: behind the end of the file.
  int64_t Seek(const FilePointer& file, uint64_t from, bool data);

  Counts GetCounts();
  void WaitUntilIdle();

  // Files that outlive this object: a journal has records of them. Before the first file is made.
  // `wanted` is called when a commit would free blocks that a write needs; by any thread, with the
  // lock.
  void KeepRecords(std::function<void()> wanted);
  // The file is that of the node; it has records from now on.
  void SetNumber(const FilePointer& file, uint64_t number);
  // Makes a file of an earlier object. nullptr: its blocks are not free.
  FilePointer Restore(uint64_t number, const KeptFiles::Data& kept);
  // Writes zeroes behind the end of a restored file, in its last page: a write that no commit knows
  // of may have made the file longer. Returns 0 or a negative errno value, and waits.
  int ZeroTail(const FilePointer& file);
  // Adds records of what has changed since the last call, or of everything.
  void Record(bool everything, RecordWriter& records);
  // A commit has ended. `kept`: it has what the last Record has added.
  void Committed(bool kept);

 private:
  struct Transfer;

  Transfer* Begin(const FilePointer& file, Direction direction, FileMap::Range range,
                  std::vector<Run> runs);
  void Start(Transfer* transfer);
  static void OnRunDone(void* argument, int status);
  void Finish(Transfer* transfer);
  void WaitForRoom(std::unique_lock<std::mutex>& lock, uint64_t bytes);
  bool WaitForCommit(std::unique_lock<std::mutex>& lock);
  void Changed(File& file);
  void Lock(std::unique_lock<std::mutex>& lock, File& file);
  void Unlock(File& file);
  int WriteZeroes(std::unique_lock<std::mutex>& lock, const FilePointer& file, uint64_t begin,
                  uint64_t end);
  int ZeroLocked(std::unique_lock<std::mutex>& lock, const FilePointer& file, uint64_t begin,
                 uint64_t end);
  uint8_t* AllocateBuffer(uint64_t bytes, bool* pooled);
  void FreeBuffer(uint8_t* buffer, bool pooled);

  Space& space_;
  const uint64_t most_in_flight_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Blocks blocks_;
  uint64_t in_flight_ = 0;
  uint64_t transfers_ = 0;
  Counts counts_;
  std::function<void()> blocks_wanted_;      // nullptr: no records are kept
  std::unordered_set<File*> recorded_;       // files with a number
  std::unordered_set<File*> changed_files_;  // among them
  uint64_t commits_ = 0;                     // that have ended
};

}  // namespace rocegw::far
