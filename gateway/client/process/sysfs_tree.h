// SPDX-License-Identifier: Apache-2.0
// Where the files of our devices are that programs expect under /sys. The daemon renders such a
// tree; where this process cannot see it (another mount namespace), the library writes a small one
// of its own below /tmp. Any thread.
#pragma once

#include "gateway/client/session/session.h"

namespace rocegw::client {

// Directory with the shape of /sys that has our devices; "/sys" when there is none. Lives as long
// as the process.
const char* SysfsRoot(Session* session);

// True when /sys/class/infiniband belongs to a kernel with RDMA devices of its own.
bool KernelHasRdma();

}  // namespace rocegw::client
