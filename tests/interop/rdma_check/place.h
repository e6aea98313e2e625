// SPDX-License-Identifier: Apache-2.0
// Place: memory of one side as the other one names it.
#pragma once

#include <cstdint>

#include "tests/interop/rdma_check/session.h"

namespace rocegw::interop {

struct Place {
  uint64_t address;
  uint32_t key;
};

// Both sides give theirs and get the other's; who has none to give says {}.
Place Tell(Session& session, const Place& mine);

}  // namespace rocegw::interop
