// SPDX-License-Identifier: Apache-2.0
// What a program's struct rocegwdv_peer is. Owned by the program until it destroys it; any thread
// may post requests that name it meanwhile.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

struct rocegwdv_peer {
  ibv_context* context;
  uint32_t handle;  // the daemon's
};
