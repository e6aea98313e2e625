// SPDX-License-Identifier: Apache-2.0
// What happens to the library when its process forks: the parent notices nothing, the child starts
// without a session and its inherited objects are dead (session.h). Handlers hold every lock of the
// control path across the fork.
#pragma once

#include <cstdint>

namespace rocegw::client {

// Once per process; any thread.
void InstallForkHandlers();

// Counts the forks between the process that loaded the library and this one.
uint32_t ForkCount();

}  // namespace rocegw::client
