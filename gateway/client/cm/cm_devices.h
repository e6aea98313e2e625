// SPDX-License-Identifier: Apache-2.0
// The contexts on which ids live: one per device, opened at first use and kept while its session
// lives and an id uses it, with a protection domain for programs that bring none. Any thread.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/client/session/session.h"

namespace rocegw::client {

struct CmDevice {
  Session* session;  // that the context belongs to
  ibv_context* context;
  ibv_pd* pd;
  ibv_xrcd* xrcd;       // once somebody wants one
  uint32_t references;  // ids, lists of devices, and one while it is the current one for its number
};

// The caller gets a reference; nullptr and errno.
CmDevice* AcquireCmDevice(Session* session, uint32_t index);
void ReleaseCmDevice(CmDevice* device);
// The XRC domain for programs that bring none; nullptr and errno.
ibv_xrcd* XrcdOfCmDevice(CmDevice* device);

void LockCmDevices();
void UnlockCmDevices();
void ResetCmDevicesLock();

}  // namespace rocegw::client
