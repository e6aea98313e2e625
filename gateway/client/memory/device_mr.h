// SPDX-License-Identifier: Apache-2.0
// Registration of GPUs' memory: the gateway opens the allocation, and copies on the device. Control
// path; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gateway/client/device/objects.h"
#include "gateway/client/memory/device_memory.h"

namespace rocegw::client {

// Requested region of device memory.
struct DeviceWish {
  ibv_pd* pd;
  uint64_t start;
  uint64_t length;
  uint64_t iova;
  uint32_t access;
  void* address;  // for ibv_mr.addr
};

// Registers a part of the allocation that FindDeviceMemory described. Returns 0, or an errno value
// with nothing registered.
int RegisterDevice(const DeviceWish& wish, rocegw_import_device* allocation, Mr* mr);

}  // namespace rocegw::client
