// SPDX-License-Identifier: Apache-2.0
// Copy of a space on disk: a queue of writes, reads and flushes, executed by one thread in their
// order, so that a read sees every write that entered the queue before it. The queue is bounded by
// its buffer. An operation that takes too long fails the copy: everything that waits fails, and the
// copy comes back when the operation returns. Any thread; callbacks run without the lock, in the
// order of the queue, on the copy's thread or on that of FailIfHung and Stop.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/far/disk/copy_file.h"

namespace rocegw::far {

class DiskCopy {
 public:
  using Clock = std::chrono::steady_clock;
  // Status of an operation that has no result: it was never executed, or still hangs.
  static constexpr int kNoResult = -ECANCELED;
  // 0 or a negative errno value.
  using Done = std::function<void(int status)>;
  // Offsets of pages.
  using Pages = std::vector<uint64_t>;
  // `bad`: the pages that were not written; without any, a write that failed wrote none.
  using WriteDone = std::function<void(int status, const Pages& bad)>;

  struct Counts {
    uint64_t queued_bytes = 0;  // now
    uint64_t written_bytes = 0, read_bytes = 0;
    uint64_t syncs = 0;
    uint64_t errors = 0;  // operations that failed, with those that hung
    uint64_t hangs = 0;
  };

  // The queue holds writes of so many bytes, each rounded up to a page. No request is longer than
  // `most_at_once`.
  DiskCopy(std::unique_ptr<CopyFile> file, uint64_t queue_bytes, uint64_t most_at_once);
  // Stop was called.
  ~DiskCopy();
  DiskCopy(const DiskCopy&) = delete;
  DiskCopy& operator=(const DiskCopy&) = delete;
  Status Start();

  // Whether operations are accepted.
  bool up() const;
  // Room in the queue for a write; nullptr: there is none now, or the copy is not up.
  uint8_t* Allocate(uint64_t bytes);
  void Free(uint8_t* data);
  // `data` is from Allocate and belongs to the copy from now on. All three call `done` once, with
  // kNoResult when the copy is not up. The buffer of a read is not touched after `done`. A write
  // that fails is tried page by page.
  void Write(uint64_t offset, uint8_t* data, uint64_t length, WriteDone done);
  void Read(uint64_t offset, uint8_t* buffer, uint64_t length, Done done);
  // A flush that hung and failed afterwards fails the next one.
  void Flush(Done done);
  // Notes in the file which pages are lost, as CopyFile::SetLost does.
  void NoteLost(std::vector<CopyFile::Range> lost, Done done);

  // Fails the copy when its present operation has been running for longer than this. The copy comes
  // back only when all that waited has failed, so that nothing overtakes these failures.
  void FailIfHung(Clock::duration timeout);
  // Executes what waits, flushes, and ends the thread. Gives up a thread whose operation runs for
  // longer than the timeout.
  void Stop(Clock::duration timeout);

  Counts GetCounts() const;

 private:
  struct Work;
  struct Entry;
  struct Result;
  struct Shared;

  static void Run(const std::shared_ptr<Shared>& shared);
  static void Enter(Shared& shared, Entry entry);

  // The thread has a reference of its own: an operation that never returns outlives this object.
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace rocegw::far
