// SPDX-License-Identifier: Apache-2.0
// Paths at which programs look for RDMA devices, and where the same is for ours: below
// /sys/class/infiniband* in the gateway's tree, and for /dev/infiniband/<device> a character device
// that can be opened. Any thread; cheap for all other paths.
#pragma once

#include <cstddef>

namespace rocegw::client {

// `path` itself or `buffer` with another one. A path that would not fit stays as it is.
const char* RedirectPath(const char* path, char* buffer, size_t size);

}  // namespace rocegw::client
