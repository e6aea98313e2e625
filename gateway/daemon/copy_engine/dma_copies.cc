// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/copy_engine/copies.h"
#include "gateway/daemon/dpdk_backend.h"
#include "gateway/port/dpdk/dma_copy_engine.h"

namespace rocegw::daemon {

StatusOr<std::unique_ptr<memory::CopyEngine>> OpenCopyEngine(
    const port::DpdkEnvironment& environment, const std::vector<std::string>& devices,
    size_t workers) {
  if (Status started = StartSharedDpdk(environment); !started.ok()) return started;
  return port::OpenDmaCopyEngine(devices, workers);
}

}  // namespace rocegw::daemon
