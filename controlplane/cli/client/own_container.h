// SPDX-License-Identifier: Apache-2.0
// Container of the gateway that uses a runtime directory. Two pods of a node share the directory
// while the gateway of one takes over from the other's.
#pragma once

#include <string>

namespace rocegw::cli {

// Returns true if the process that the lock file names is in the control groups of this process,
// as in one container. The numbers of processes must mean the same in both containers (hostPID).
// `proc`: "/proc". False if there is no such file or process.
bool HolderIsInThisContainer(const std::string& lock, const std::string& proc);

}  // namespace rocegw::cli
