// SPDX-License-Identifier: Apache-2.0
// DPDK's environment abstraction layer, which a process can start only once. Called by the control
// thread before the first DPDK port is made. Ports that follow in the same process share it.
#pragma once

#include "gateway/base/status.h"
#include "gateway/port/port_config.h"

namespace rocegw::port {

// The first call decides; later ones return what it returned. Leaves the caller's CPU affinity
// alone.
Status StartDpdk(const DpdkEnvironment& environment);

// Gives the calling thread an identity in DPDK, and with it caches of packet buffers. Does nothing
// for threads that have one.
void RegisterDpdkThread();

}  // namespace rocegw::port
