// SPDX-License-Identifier: Apache-2.0
// States that only a bug of ours can reach. ROCEGW_INVARIANT(condition, "unique-id") dies in debug
// builds; in release builds it counts and yields false, and the caller fails closed (QP to error,
// packet dropped).
#pragma once

#include <cstdint>

namespace rocegw {

// Reports a broken invariant: aborts with the id when NDEBUG is not defined, otherwise counts it.
// Returns false.
bool InvariantBroken(const char* id);
// How many invariants broke since start (release builds).
uint64_t InvariantBrokenCount();

}  // namespace rocegw

#define ROCEGW_INVARIANT(condition, id) \
  (__builtin_expect(!!(condition), 1) || ::rocegw::InvariantBroken(id))
