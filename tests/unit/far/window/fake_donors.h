// SPDX-License-Identifier: Apache-2.0
// Space of a session without donors and devices: a disk copy in memory has all of it. Pages can be
// made unreadable, as lost ones are. fake_device.cc stands in for the verbs device.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "gateway/far/disk/disk_copy.h"
#include "gateway/far/session/dispatcher.h"
#include "gateway/far/session/registered_memory.h"
#include "gateway/far/session/settings.h"

namespace rocegw::far {

class FileInMemory final : public CopyFile {
 public:
  explicit FileInMemory(uint64_t bytes) : bytes_(bytes) {}

  ssize_t Read(uint8_t* buffer, uint64_t length, uint64_t offset) override {
    const std::lock_guard lock(mutex_);
    for (uint64_t at = offset; at < offset + length; at += kPageBytes) {
      if (!unreadable_.contains(at / kPageBytes)) continue;
      errno = EIO;
      return -1;
    }
    std::memcpy(buffer, &bytes_[offset], length);
    return static_cast<ssize_t>(length);
  }
  ssize_t Write(const uint8_t* data, uint64_t length, uint64_t offset) override {
    const std::lock_guard lock(mutex_);
    std::memcpy(&bytes_[offset], data, length);
    return static_cast<ssize_t>(length);
  }
  int Punch(uint64_t offset, uint64_t length) override {
    const std::lock_guard lock(mutex_);
    std::fill_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), length, 0);
    return 0;
  }
  int Sync() override { return 0; }
  int FindData(const Found& /*found*/) override { return 0; }
  int SetLost(const std::vector<Range>& /*lost*/) override { return 0; }
  int FindLost(std::vector<Range>& /*lost*/) override { return 0; }

  void MakeUnreadable(uint64_t page) {
    const std::lock_guard lock(mutex_);
    unreadable_.insert(page);
  }
  std::vector<uint8_t> Copy() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  std::mutex mutex_;
  std::vector<uint8_t> bytes_;
  std::set<uint64_t> unreadable_;
};

class FakeDonors {
 public:
  static constexpr uint64_t kSlab = 1 << 20;

  explicit FakeDonors(uint64_t slabs) {
    Settings settings;
    settings.slabs = slabs;
    settings.merge.slab_bytes = kSlab;
    settings.merge.most_bytes = kSlab;
    settings.merge.most_segments = 16;
    settings.pool_bytes = 4 << 20;
    settings.copy_limit_bytes = UINT64_MAX;
    settings.most_queued_bytes = 64 << 20;
    settings.timeout_ms = 5000;
    settings.disk_path = "in memory";
    auto file = std::make_unique<FileInMemory>(slabs * kSlab);
    file_ = file.get();
    // All of the space was written: it is read from the file.
    auto disk = std::make_unique<DiskCopy>(std::move(file), 16 << 20, kSlab);
    ok_ = disk->Start().ok() &&
          memory_.Make(settings.StagingBytes() + (8 << 20), settings.pool_bytes).ok();
    dispatcher_ = std::make_unique<Dispatcher>(settings, memory_, std::move(disk), [] {});
    dispatcher_->Recover(0, slabs * kSlab);
  }
  bool ok() const { return ok_; }
  Dispatcher& dispatcher() { return *dispatcher_; }
  FileInMemory& file() { return *file_; }

 private:
  bool ok_ = false;
  RegisteredMemory memory_;
  FileInMemory* file_ = nullptr;
  std::unique_ptr<Dispatcher> dispatcher_;
};

}  // namespace rocegw::far
