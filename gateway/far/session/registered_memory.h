// SPDX-License-Identifier: Apache-2.0
// Registered memory of a session on its device: the staging buffer, the callers' pool, and buffers
// of callers that are registered for one request. The session's lock guards the arenas.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "gateway/base/status.h"
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

class RegisteredMemory {
 public:
  RegisteredMemory() = default;
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  Status Make(ibv_context* context, uint64_t staging_bytes, uint64_t pool_bytes);
  ibv_pd* pd() const { return pd_; }

  Arena& staging() { return *staging_arena_; }
  uint8_t* staging_data() const { return staging_.data(); }
  uint32_t staging_key() const { return staging_mr_->lkey; }

  Arena& pool() { return *pool_arena_; }
  uint8_t* pool_data() const { return pool_.data(); }
  bool IsInPool(const void* at, uint64_t length) const { return pool_.Contains(at, length); }
  uint32_t pool_key() const { return pool_mr_->lkey; }

  // Registers a buffer for one request; nullptr when that fails (too much locked memory: the
  // request is copied instead). Any thread.
  ibv_mr* Register(void* buffer, uint64_t bytes) const;

  // Measures from which size on registering a buffer and undoing that is cheaper than copying it,
  // among powers of two up to `most`. `most` when it never is.
  uint64_t MeasureCopyLimit(uint64_t most) const;

 private:
  ibv_pd* pd_ = nullptr;
  Mapping staging_;
  Mapping pool_;
  ibv_mr* staging_mr_ = nullptr;
  ibv_mr* pool_mr_ = nullptr;
  std::unique_ptr<Arena> staging_arena_;
  std::unique_ptr<Arena> pool_arena_;
};

}  // namespace rocegw::far
