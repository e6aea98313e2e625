// SPDX-License-Identifier: Apache-2.0
// Setting that decides which pools have the memory placement extensions (IBTA annex A19: FLUSH and
// ATOMIC WRITE).
#pragma once

#include <cstdint>

namespace rocegw {

enum class MemoryPlacement : uint8_t {
  kDisabled,
  kByPool,   // pools that ask for them
  kEnabled,  // all pools except those that deny them
};

}  // namespace rocegw
