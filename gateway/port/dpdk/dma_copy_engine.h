// SPDX-License-Identifier: Apache-2.0
// Copy engines that DPDK drives (dmadev): Intel DSA by the driver idxd, and DPDK's skeleton driver,
// whose engine is a thread. One device has one queue and serves one worker. Only devices that use
// the addresses of this process (SVA) are taken: others need every page that they touch pinned and
// mapped in advance.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/memory/copy_engine.h"

namespace rocegw::port {

// Opens the named devices; none named: all that DPDK found. A name that begins with dma_skeleton
// makes that virtual device, of which a process can have one. Devices beyond the number of workers
// are not opened. ENODEV: there is no device. Control thread; StartDpdk comes first.
StatusOr<std::unique_ptr<memory::CopyEngine>> OpenDmaCopyEngine(
    const std::vector<std::string>& devices, size_t workers);

}  // namespace rocegw::port
