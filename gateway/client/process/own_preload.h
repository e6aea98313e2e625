// SPDX-License-Identifier: Apache-2.0
// Check of LD_PRELOAD in a container with a slot of a pool. The agent's device plugin sets
// LD_PRELOAD to this library; a pod's own setting replaces it. Any thread.
#pragma once

#include <stddef.h>

namespace rocegw::client {

// Returns the names in LD_PRELOAD besides this library, separated by colons, as far as they fit; ""
// if there are none, and outside such containers.
void FindOwnPreload(char* text, size_t size);

}  // namespace rocegw::client
