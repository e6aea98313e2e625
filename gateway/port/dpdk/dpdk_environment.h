// SPDX-License-Identifier: Apache-2.0
// DPDK's environment abstraction layer, which a process can start only once. The control thread
// starts it before the first DPDK port; later ports of the process share it.
#pragma once

#include <cstdio>

#include "gateway/base/status.h"
#include "gateway/port/port_config.h"

namespace rocegw::port {

// Starts the layer. Later calls return the first call's result. Keeps the caller's CPU affinity.
// `log`: stream of DPDK's messages, never closed; nullptr: standard error.
Status StartDpdk(const DpdkEnvironment& environment, std::FILE* log = nullptr);

// Registers the calling thread with DPDK, which gives it caches of packet buffers. Does nothing for
// registered threads.
void RegisterDpdkThread();

}  // namespace rocegw::port
