// SPDX-License-Identifier: Apache-2.0
// A container that was given a slot of a pool is given LD_PRELOAD with this library (the agent's
// device plugin). A pod may say something else there, which takes its place. Any thread.
#pragma once

#include <stddef.h>

namespace rocegw::client {

// What LD_PRELOAD names besides this library, separated by colons, as much as there is room for; ""
// where nothing is, and outside of such containers.
void FindOwnPreload(char* text, size_t size);

}  // namespace rocegw::client
