// SPDX-License-Identifier: Apache-2.0
// Redirection of paths at which programs look for RDMA devices: below /sys/class/infiniband* to the
// gateway's tree, and /dev/infiniband/<device> to a character device that can be opened. Any
// thread; cheap for all other paths.
#pragma once

#include <cstddef>

namespace rocegw::client {

// Returns `path`, or `buffer` with the replacement. A path that would not fit is unchanged.
const char* RedirectPath(const char* path, char* buffer, size_t size);

}  // namespace rocegw::client
