// SPDX-License-Identifier: Apache-2.0
// Who has the memory placement extensions (IBTA annex A19: FLUSH and ATOMIC WRITE), as a gateway is
// configured.
#pragma once

#include <cstdint>

namespace rocegw {

enum class MemoryPlacement : uint8_t {
  kDisabled,
  kByPool,   // pools that ask for them
  kEnabled,  // but where a pool denies them
};

}  // namespace rocegw
