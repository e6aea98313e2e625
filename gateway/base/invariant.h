// SPDX-License-Identifier: Apache-2.0
// Checks for states that only a bug in this program can reach. ROCEGW_INVARIANT(condition,
// "unique-id") aborts in debug builds. In release builds it counts and yields false, and the caller
// fails closed (queue pair to error, packet dropped).
#pragma once

#include <cstdint>

namespace rocegw {

// Reports a broken invariant: aborts with the id if NDEBUG is not defined, otherwise counts it.
// Returns false.
bool InvariantBroken(const char* id);
// Returns how many invariants broke since start (release builds).
uint64_t InvariantBrokenCount();

}  // namespace rocegw

#define ROCEGW_INVARIANT(condition, id) \
  (__builtin_expect(!!(condition), 1) || ::rocegw::InvariantBroken(id))
