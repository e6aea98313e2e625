// SPDX-License-Identifier: Apache-2.0
// Registered memory of a session on its device: the staging buffer, the callers' pool, and buffers
// of callers that are registered for one request. The device may be replaced by another one. The
// session's lock guards the arenas.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "gateway/base/status.h"
#include "gateway/far/link/connection.h"
#include "gateway/far/request/arena.h"

namespace rocegw::far {

// Private anonymous mapping.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  Status Map(uint64_t bytes);
  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  bool Contains(const void* at, uint64_t length) const;

 private:
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// Device that a session uses, with the session's memory registered there. Buffers of requests that
// are registered with it keep it open: a device that is gone is closed with the last of them.
class MemoryDevice {
 public:
  // `opener` has resolved an address through the device, and keeps it open.
  explicit MemoryDevice(std::unique_ptr<Connection> opener) : opener_(std::move(opener)) {}
  ~MemoryDevice();
  MemoryDevice(const MemoryDevice&) = delete;
  MemoryDevice& operator=(const MemoryDevice&) = delete;

  Status Register(const Mapping& staging, const Mapping& pool);
  ibv_context* context() const { return opener_->context(); }
  ibv_pd* pd() const { return pd_; }
  uint32_t staging_key() const { return staging_mr_ != nullptr ? staging_mr_->lkey : 0; }
  uint32_t pool_key() const { return pool_mr_ != nullptr ? pool_mr_->lkey : 0; }

 private:
  const std::unique_ptr<Connection> opener_;
  ibv_pd* pd_ = nullptr;
  ibv_mr* staging_mr_ = nullptr;
  ibv_mr* pool_mr_ = nullptr;
};

class RegisteredMemory {
 public:
  Status Make(uint64_t staging_bytes, uint64_t pool_bytes);
  // Registers the memory with the device, in place of an earlier one; nullptr: with none. The
  // session sends nothing meanwhile.
  Status Use(std::unique_ptr<Connection> opener);

  // Device in use; nullptr: none. Any thread.
  std::shared_ptr<MemoryDevice> device() const;
  // Whether the device in use has ended, with all that was made with it. Any thread.
  bool IsDeviceGone() const;

  Arena& staging() { return *staging_arena_; }
  uint8_t* staging_data() const { return staging_.data(); }
  uint32_t staging_key() const { return staging_key_; }

  Arena& pool() { return *pool_arena_; }
  uint8_t* pool_data() const { return pool_.data(); }
  bool IsInPool(const void* at, uint64_t length) const { return pool_.Contains(at, length); }
  uint32_t pool_key() const { return pool_key_; }

  // Buffer that is registered for one request. Without `mr` that has failed (no device, too much
  // locked memory): the request is copied instead.
  struct Registration {
    std::shared_ptr<MemoryDevice> device;
    ibv_mr* mr = nullptr;
  };
  // Any thread.
  Registration Register(void* buffer, uint64_t bytes) const;

  // Measures from which size on registering a buffer and undoing that is cheaper than copying it,
  // among powers of two up to `most`. `most` when it never is.
  uint64_t MeasureCopyLimit(uint64_t most) const;

 private:
  Mapping staging_;
  Mapping pool_;
  std::unique_ptr<Arena> staging_arena_;
  std::unique_ptr<Arena> pool_arena_;
  mutable std::mutex mutex_;  // guards the pointer
  std::shared_ptr<MemoryDevice> device_;
  std::atomic<uint32_t> staging_key_{0};
  std::atomic<uint32_t> pool_key_{0};
};

}  // namespace rocegw::far
