// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/front/heap_return.h"

#include <malloc.h>

#include <algorithm>

namespace rocegw::server {
namespace {

constexpr uint64_t kManyEnded = 4;
constexpr size_t kKeptBytes = size_t{16} << 20;
constexpr std::chrono::seconds kHeapSettles(1);
constexpr std::chrono::seconds kHeapEvery(3);
// gRPC ends streams late, so one check is not enough.
constexpr int kHeapLooks = 3;

}  // namespace

void HeapReturn::CountEnded() {
  const std::lock_guard lock(mutex_);
  if (++ended_ < kManyEnded) return;
  ended_ = 0;
  if (looks_ == 0) due_ = std::max(due_, Clock::now() + kHeapSettles);
  looks_ = kHeapLooks;
}

void HeapReturn::Look() {
  {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    if (looks_ == 0 || now < due_) return;
    --looks_;
    due_ = now + kHeapEvery;
  }
  if (mallinfo2().fordblks < kKeptBytes) return;
  (void)malloc_trim(kKeptBytes);
  returns_.fetch_add(1);
}

}  // namespace rocegw::server
