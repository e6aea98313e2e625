// SPDX-License-Identifier: Apache-2.0
// Object behind a program's struct rocegwdv_peer. Owned by the program until it destroys it;
// meanwhile any thread may post requests that name it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

struct rocegwdv_peer {
  ibv_context* context;
  uint32_t handle;  // the daemon's handle
};
