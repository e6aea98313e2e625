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

RegisteredMemory::~RegisteredMemory() {
  if (staging_mr_ != nullptr) ibv_dereg_mr(staging_mr_);
  if (pool_mr_ != nullptr) ibv_dereg_mr(pool_mr_);
  if (pd_ != nullptr) ibv_dealloc_pd(pd_);
}

Status RegisteredMemory::Make(ibv_context* context, uint64_t staging_bytes, uint64_t pool_bytes) {
  pd_ = ibv_alloc_pd(context);
  if (pd_ == nullptr) return {errno, std::string("no protection domain: ") + strerror(errno)};
  struct Area {
    Mapping& mapping;
    ibv_mr*& mr;
    uint64_t bytes;
  };
  for (const Area& area :
       {Area{staging_, staging_mr_, staging_bytes}, Area{pool_, pool_mr_, pool_bytes}}) {
    if (area.bytes == 0) continue;
    if (Status status = area.mapping.Map(area.bytes); !status.ok()) return status;
    area.mr = ibv_reg_mr(pd_, area.mapping.data(), area.bytes, IBV_ACCESS_LOCAL_WRITE);
    if (area.mr == nullptr) {
      return {errno, "cannot register " + std::to_string(area.bytes) +
                         " bytes: " + strerror(errno) + " (ulimit -l, quota of the pool?)"};
    }
  }
  staging_arena_ = std::make_unique<Arena>(staging_bytes);
  pool_arena_ = std::make_unique<Arena>(pool_bytes);
  return OkStatus();
}

ibv_mr* RegisteredMemory::Register(void* buffer, uint64_t bytes) const {
  return ibv_reg_mr(pd_, buffer, bytes, IBV_ACCESS_LOCAL_WRITE);
}

uint64_t RegisteredMemory::MeasureCopyLimit(uint64_t most) const {
  for (uint64_t bytes = kSmallestMeasured; bytes <= std::min(most, staging_.bytes()); bytes *= 2) {
    Mapping buffer;
    if (!buffer.Map(bytes).ok()) return most;
    memset(buffer.data(), 1, bytes);
    const int64_t copy = Shortest([&] { memcpy(staging_.data(), buffer.data(), bytes); });
    bool failed = false;
    const int64_t registration = Shortest([&] {
      ibv_mr* mr = Register(buffer.data(), bytes);
      failed |= mr == nullptr || ibv_dereg_mr(mr) != 0;
    });
    if (failed) return most;
    if (registration < copy) return bytes / 2;
  }
  return most;
}

}  // namespace rocegw::far
