// SPDX-License-Identifier: Apache-2.0
// File of a disk copy in memory of the test. It fails, transfers less than asked for, or hangs, as
// the test says. Keeps what it was asked to do.
#pragma once

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "gateway/far/disk/copy_file.h"

namespace rocegw::far {

// Shared by the test and by the disk copy, which owns a FaultyFile.
struct FaultyDisk {
  struct Write {
    uint64_t offset, length;
  };

  explicit FaultyDisk(uint64_t size) : bytes(size, 0), durable(size, 0) {}

  // Waits while the test lets the disk hang. Counts those that wait.
  void Pass(std::unique_lock<std::mutex>& lock) {
    waiting++;
    changed.notify_all();
    changed.wait(lock, [this] { return !hang; });
    waiting--;
  }
  void Hang() {
    const std::lock_guard lock(mutex);
    hang = true;
  }
  void GoOn() {
    const std::lock_guard lock(mutex);
    hang = false;
    changed.notify_all();
  }
  void WaitUntilItHangs() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return waiting != 0; });
  }
  bool Fails(uint64_t offset, uint64_t length) const {
    for (const uint64_t page : bad_pages) {
      if (offset < (page + 1) * CopyFile::kPageBytes &&
          page * CopyFile::kPageBytes < offset + length) {
        return true;
      }
    }
    return false;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> durable;  // bytes of the last sync, which a power failure leaves
  std::set<uint64_t> bad_pages;  // fail with `error`
  int error = EIO;
  int sync_error = 0;
  uint64_t most_at_once = UINT64_MAX;  // bytes that one call transfers
  bool hang = false;
  int waiting = 0;
  std::vector<Write> writes, punches;
  int syncs = 0;
  std::vector<CopyFile::Range> lost;
};

class FaultyFile final : public CopyFile {
 public:
  explicit FaultyFile(FaultyDisk& disk) : disk_(disk) {}

  ssize_t Read(uint8_t* buffer, uint64_t length, uint64_t offset) override {
    std::unique_lock lock(disk_.mutex);
    disk_.Pass(lock);
    if (!Check(buffer, length, offset)) return -1;
    length = std::min(length, disk_.most_at_once);
    std::memcpy(buffer, &disk_.bytes[offset], length);
    return static_cast<ssize_t>(length);
  }
  ssize_t Write(const uint8_t* data, uint64_t length, uint64_t offset) override {
    std::unique_lock lock(disk_.mutex);
    disk_.Pass(lock);
    if (!Check(data, length, offset)) return -1;
    length = std::min(length, disk_.most_at_once);
    disk_.writes.push_back({offset, length});
    std::memcpy(&disk_.bytes[offset], data, length);
    return static_cast<ssize_t>(length);
  }
  int Punch(uint64_t offset, uint64_t length) override {
    const std::lock_guard lock(disk_.mutex);
    disk_.punches.push_back({offset, length});
    std::fill_n(disk_.bytes.begin() + static_cast<long>(offset), length, 0);
    return 0;
  }
  int Sync() override {
    std::unique_lock lock(disk_.mutex);
    disk_.Pass(lock);
    disk_.syncs++;
    if (disk_.sync_error == 0) disk_.durable = disk_.bytes;
    errno = disk_.sync_error;
    return disk_.sync_error == 0 ? 0 : -1;
  }
  int FindData(const Found& found) override {
    found(0, disk_.bytes.size());
    return 0;
  }
  int SetLost(const std::vector<Range>& lost) override {
    std::unique_lock lock(disk_.mutex);
    disk_.Pass(lock);
    disk_.lost = lost;
    return 0;
  }
  int FindLost(std::vector<Range>& lost) override {
    const std::lock_guard lock(disk_.mutex);
    lost = disk_.lost;
    return 0;
  }

 private:
  // As a file that is opened with O_DIRECT.
  bool Check(const void* buffer, uint64_t length, uint64_t offset) const {
    errno = EINVAL;
    if (reinterpret_cast<uintptr_t>(buffer) % kPageBytes != 0 || length % kPageBytes != 0 ||
        offset % kPageBytes != 0 || offset + length > disk_.bytes.size()) {
      return false;
    }
    errno = disk_.error;
    return !disk_.Fails(offset, length);
  }

  FaultyDisk& disk_;
};

}  // namespace rocegw::far
