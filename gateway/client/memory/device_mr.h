// SPDX-License-Identifier: Apache-2.0
// Registration of GPUs' memory: the gateway opens the allocation, and copies on the device. Control
// path; any thread.
#pragma once

#include "gateway/client/device/objects.h"
#include "gateway/client/memory/device_memory.h"
#include "gateway/client/memory/region_mr.h"

namespace rocegw::client {

// Registers a part of the allocation that FindDeviceMemory described, and closes its descriptor.
// Returns 0, or an errno value with nothing registered.
int RegisterDevice(const MrWish& wish, rocegw_import_device* allocation, int descriptor, Mr* mr);

}  // namespace rocegw::client
