// SPDX-License-Identifier: Apache-2.0
// Contexts for ids: one per device, opened at first use and kept while its session lives and an id
// uses it, with a protection domain for programs that pass none. Any thread.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/client/session/session.h"

namespace rocegw::client {

struct CmDevice {
  Session* session;  // session of the context
  ibv_context* context;
  ibv_pd* pd;
  ibv_xrcd* xrcd;       // created at first use
  uint32_t references;  // ids, lists of devices, and the table while it is the current device of
                        // its number
};

// Returns a device with a reference for the caller; nullptr and errno.
CmDevice* AcquireCmDevice(Session* session, uint32_t index);
void ReleaseCmDevice(CmDevice* device);
// Returns the XRC domain for programs that pass none; nullptr and errno.
ibv_xrcd* XrcdOfCmDevice(CmDevice* device);

void LockCmDevices();
void UnlockCmDevices();
void ResetCmDevicesLock();

}  // namespace rocegw::client
