// SPDX-License-Identifier: Apache-2.0
// Which memory may be moved onto pages that the daemon shares without anybody noticing. All rules
// answer with enum rocegw_kept: 0 (may move) or the first reason against it. Control path; any
// thread; nothing is allocated.
#pragma once

#include <cstdint>

#include "gateway/abi/rocegw_abi.h"

namespace rocegw::client {

// What the process wants: ROCEGW_REMAP.
enum class RemapMode {
  kNever,
  kAuto,    // large memory, where nobody else can hold its pages
  kAlways,  // whatever the mapping allows; the user vouches for devices and sizes
};
RemapMode RemapModeOfProcess();

// The first of the rules below: [start, end) is private, anonymous, unnamed memory that can be read
// and written but not executed.
bool IsPlainMemory(uint64_t start, uint64_t end);

// The mapping itself, [start, end) in whole pages: private, anonymous, ordinary, nobody's stack. No
// mode skips these.
uint32_t CheckMapping(uint64_t start, uint64_t end);

// Whether a device driver or io_uring may hold pages of this process: one that did would go on
// using the old ones. Looks at the open descriptors.
bool MayHoldPages();

// Whether looking up a mapping's properties costs too much for what is gained.
bool IsTooLargeFor(uint64_t length);

}  // namespace rocegw::client
