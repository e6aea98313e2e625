// SPDX-License-Identifier: Apache-2.0
// Files of our devices that programs expect under /sys. The daemon writes such a tree; if this
// process cannot see it (another mount namespace), the library writes a small one below /tmp. Any
// thread.
#pragma once

#include "gateway/client/session/session.h"

namespace rocegw::client {

// Returns the directory in the layout of /sys that has our devices; "/sys" if there is none. Valid
// as long as the process.
const char* SysfsRoot(Session* session);

// For fork, which must not meet a half-written table.
void LockSysfsRoots();
void UnlockSysfsRoots();
void ResetSysfsRootsLock();

// Returns true if /sys/class/infiniband belongs to a kernel with RDMA devices.
bool KernelHasRdma();

}  // namespace rocegw::client
