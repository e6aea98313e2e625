// SPDX-License-Identifier: Apache-2.0
// Settings of the library from the environment of the process. The environment of a program with
// more rights than its caller (set-user-ID, set-group-ID, file capabilities; AT_SECURE of
// getauxval(3)) is the caller's: all settings have their defaults there. Any thread.
#pragma once

#include <stdlib.h>
#include <sys/auxv.h>

namespace rocegw::client {

// Returns nullptr if the variable is not set, or must not be used.
inline const char* Setting(const char* name) { return secure_getenv(name); }

// Returns true if the process has more rights than its caller.
inline bool HasMoreRightsThanCaller() { return getauxval(AT_SECURE) != 0; }

}  // namespace rocegw::client
