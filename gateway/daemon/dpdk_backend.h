// SPDX-License-Identifier: Apache-2.0
// Port backend of DPDK devices. Control thread, while no worker runs.
#pragma once

#include <cstddef>
#include <memory>

#include "gateway/base/status.h"
#include "gateway/daemon/config.h"
#include "gateway/datapath/port_backend.h"
#include "gateway/port/steering.h"

namespace rocegw::daemon {

// Returns ENOTSUP if this build has no DPDK. `pci`: the gateway has ports of mode pci; the first
// call starts DPDK for all ports.
StatusOr<std::unique_ptr<datapath::PortBackend>> OpenDpdk(const PortConfig& config,
                                                          const DpdkConfig& environment,
                                                          size_t interface_mtu,
                                                          const port::SteeringTable& steering,
                                                          bool pci);

}  // namespace rocegw::daemon
