// SPDX-License-Identifier: Apache-2.0
// Port backend of DPDK devices. Control thread, while no worker runs.
#pragma once

#include <cstddef>
#include <memory>

#include "gateway/base/status.h"
#include "gateway/daemon/config.h"
#include "gateway/datapath/port_backend.h"
#include "gateway/port/port_config.h"
#include "gateway/port/steering.h"

namespace rocegw::daemon {

// Starts DPDK for all its users in this process, whose messages go to the log; later calls return
// the first one's result. Only in a build with DPDK.
Status StartSharedDpdk(const port::DpdkEnvironment& environment);

// Returns ENOTSUP if this build has no DPDK. The first call starts DPDK for all ports.
StatusOr<std::unique_ptr<datapath::PortBackend>> OpenDpdk(const PortConfig& config,
                                                          const port::DpdkEnvironment& environment,
                                                          size_t interface_mtu,
                                                          const port::SteeringTable& steering);

}  // namespace rocegw::daemon
