// SPDX-License-Identifier: Apache-2.0
// Behaviour of the library at fork: nothing changes for the parent; the child starts without a
// session and its inherited objects are dead (session.h). Handlers hold every lock of the control
// path across the fork.
#pragma once

#include <cstdint>

namespace rocegw::client {

// Called once per process; any thread.
void InstallForkHandlers();

// Returns the number of forks between the process that loaded the library and this one.
uint32_t ForkCount();

}  // namespace rocegw::client
