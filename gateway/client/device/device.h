// SPDX-License-Identifier: Apache-2.0
// Devices of the gateway as programs see them. A device's structure lives as long as the process
// and keeps its address: programs and librdmacm compare such pointers across calls. Any thread.
#pragma once

#include "gateway/client/device/objects.h"
#include "gateway/client/session/session.h"

namespace rocegw::client {

constexpr uint32_t kMaxDevices = 64;

// Queries the session's devices and stores up to kMaxDevices pointers. Returns their number, or
// -errno.
int ListDevices(Session* session, Device** devices);

bool IsOurs(const ibv_device* device);
inline Device* FromIbv(ibv_device* device) { return reinterpret_cast<Device*>(device); }

int QueryDevice(Session* session, uint32_t index, rocegw_device_reply* reply);

// Visits the GIDs of a device in ascending order; `visit` returns false to stop. 0 or an errno
// value.
int ForEachGid(Session* session, uint32_t device, uint32_t first,
               bool (*visit)(const rocegw_gid_entry& entry, void* context), void* context);

void LockDevices();
void UnlockDevices();
void ResetDevicesLock();

}  // namespace rocegw::client
