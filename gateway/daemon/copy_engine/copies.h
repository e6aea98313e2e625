// SPDX-License-Identifier: Apache-2.0
// Copy engines of the daemon, by DPDK's dmadev. Control thread, while no worker runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/memory/copy_engine.h"
#include "gateway/port/port_config.h"

namespace rocegw::daemon {

// Starts DPDK if no port has, and opens the devices (port/dpdk/dma_copy_engine.h). ENOTSUP: this
// build has no DPDK.
StatusOr<std::unique_ptr<memory::CopyEngine>> OpenCopyEngine(
    const port::DpdkEnvironment& environment, const std::vector<std::string>& devices,
    size_t workers);

}  // namespace rocegw::daemon
