// SPDX-License-Identifier: Apache-2.0
#include "gateway/base/invariant.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace rocegw {
namespace {
std::atomic<uint64_t> broken_count{0};
}  // namespace

bool InvariantBroken(const char* id) {
  broken_count.fetch_add(1, std::memory_order_relaxed);
  std::fprintf(stderr, "rocegw: invariant broken: %s\n", id);
#ifndef NDEBUG
  std::abort();
#endif
  return false;
}

uint64_t InvariantBrokenCount() { return broken_count.load(std::memory_order_relaxed); }

}  // namespace rocegw
