// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/session/registered_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

namespace rocegw::far {
namespace {

constexpr uint64_t kSmallestMeasured = 64 << 10;
constexpr int kMeasurements = 5;

// The shortest of some runs, in nanoseconds: others were interrupted.
template <typename Work>
int64_t Shortest(Work&& work) {
  int64_t shortest = INT64_MAX;
  for (int run = 0; run < kMeasurements; run++) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const auto took = std::chrono::steady_clock::now() - begin;
    shortest = std::min<int64_t>(
        shortest, std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
  }
  return shortest;
}

}  // namespace

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

Status Mapping::Map(uint64_t bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    return {errno, "no memory of " + std::to_string(bytes) + " bytes: " + std::strerror(errno)};
  }
  data_ = static_cast<uint8_t*>(mapped);
  bytes_ = bytes;
  return OkStatus();
}

bool Mapping::Contains(const void* at, uint64_t length) const {
  const auto address = reinterpret_cast<uintptr_t>(at);
  const auto begin = reinterpret_cast<uintptr_t>(data_);
  return data_ != nullptr && address >= begin && address - begin <= bytes_ &&
         length <= bytes_ - (address - begin);
}

MemoryDevice::~MemoryDevice() {
  if (staging_mr_ != nullptr) ibv_dereg_mr(staging_mr_);
  if (pool_mr_ != nullptr) ibv_dereg_mr(pool_mr_);
  if (pd_ != nullptr) ibv_dealloc_pd(pd_);
}

Status MemoryDevice::Register(const Mapping& staging, const Mapping& pool) {
  pd_ = ibv_alloc_pd(context());
  if (pd_ == nullptr) return {errno, std::string("no protection domain: ") + strerror(errno)};
  struct Area {
    const Mapping& mapping;
    ibv_mr*& mr;
  };
  for (const Area& area : {Area{staging, staging_mr_}, Area{pool, pool_mr_}}) {
    const uint64_t bytes = area.mapping.bytes();
    if (bytes == 0) continue;
    area.mr = ibv_reg_mr(pd_, area.mapping.data(), bytes, IBV_ACCESS_LOCAL_WRITE);
    if (area.mr == nullptr) {
      return {errno, "cannot register " + std::to_string(bytes) + " bytes: " + strerror(errno) +
                         " (ulimit -l, quota of the pool?)"};
    }
  }
  return OkStatus();
}

Status RegisteredMemory::Make(uint64_t staging_bytes, uint64_t pool_bytes) {
  if (Status status = staging_.Map(staging_bytes); !status.ok()) return status;
  if (pool_bytes != 0) {
    if (Status status = pool_.Map(pool_bytes); !status.ok()) return status;
  }
  staging_arena_ = std::make_unique<Arena>(staging_bytes);
  pool_arena_ = std::make_unique<Arena>(pool_bytes);
  return OkStatus();
}

Status RegisteredMemory::Use(std::unique_ptr<Connection> opener) {
  std::shared_ptr<MemoryDevice> device;
  if (opener != nullptr) {
    device = std::make_shared<MemoryDevice>(std::move(opener));
    if (Status status = device->Register(staging_, pool_); !status.ok()) return status;
    staging_key_ = device->staging_key();
    pool_key_ = device->pool_key();
  }
  {
    const std::lock_guard lock(mutex_);
    device_.swap(device);
  }
  // The earlier device is closed here, if no request uses it.
  return OkStatus();
}

std::shared_ptr<MemoryDevice> RegisteredMemory::device() const {
  const std::lock_guard lock(mutex_);
  return device_;
}

bool RegisteredMemory::IsDeviceGone() const {
  const auto used = device();
  ibv_device_attr attributes{};
  return used == nullptr || ibv_query_device(used->context(), &attributes) != 0;
}

RegisteredMemory::Registration RegisteredMemory::Register(void* buffer, uint64_t bytes) const {
  Registration made{device()};
  if (made.device != nullptr)
    made.mr = ibv_reg_mr(made.device->pd(), buffer, bytes, IBV_ACCESS_LOCAL_WRITE);
  return made;
}

uint64_t RegisteredMemory::MeasureCopyLimit(uint64_t most) const {
  for (uint64_t bytes = kSmallestMeasured; bytes <= std::min(most, staging_.bytes()); bytes *= 2) {
    Mapping buffer;
    if (!buffer.Map(bytes).ok()) return most;
    memset(buffer.data(), 1, bytes);
    const int64_t copy = Shortest([&] { memcpy(staging_.data(), buffer.data(), bytes); });
    bool failed = false;
    const int64_t registration = Shortest([&] {
      ibv_mr* mr = Register(buffer.data(), bytes).mr;
      failed |= mr == nullptr || ibv_dereg_mr(mr) != 0;
    });
    if (failed) return most;
    if (registration < copy) return bytes / 2;
  }
  return most;
}

}  // namespace rocegw::far
