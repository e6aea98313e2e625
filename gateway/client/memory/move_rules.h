// SPDX-License-Identifier: Apache-2.0
// Rules for memory that may be moved onto pages shared with the daemon without a visible effect.
// All return enum rocegw_kept: 0 (may move) or the first reason against it. Control path; any
// thread; nothing is allocated.
#pragma once

#include <cstdint>

#include "gateway/abi/rocegw_abi.h"

namespace rocegw::client {

// Setting of the process: ROCEGW_REMAP.
enum class RemapMode {
  kNever,
  kAuto,    // large memory whose pages no device or io_uring can hold
  kAlways,  // whatever the mapping allows; the user vouches for devices and sizes
};
RemapMode RemapModeOfProcess();

// Checks the first rule: [start, end) is private, anonymous, unnamed memory, readable, writable,
// not executable.
bool IsPlainMemory(uint64_t start, uint64_t end);

// Checks the mapping of [start, end), whole pages: private, anonymous, ordinary, no stack. Applies
// in every mode.
uint32_t CheckMapping(uint64_t start, uint64_t end);

// Returns true if a device driver or io_uring may hold pages of this process: it would continue to
// use the old ones. Examines the open descriptors.
bool MayHoldPages();

// Returns true if looking up the mapping's properties costs too much for the gain.
bool IsTooLargeFor(uint64_t length);

}  // namespace rocegw::client
