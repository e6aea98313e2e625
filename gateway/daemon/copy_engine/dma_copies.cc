// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "gateway/daemon/copy_engine/copies.h"
#include "gateway/port/dpdk/dma_copy_engine.h"
#include "gateway/port/dpdk/dpdk_environment.h"
#include "gateway/process/log/foreign_lines.h"

namespace rocegw::daemon {

StatusOr<std::unique_ptr<memory::CopyEngine>> OpenCopyEngine(
    const port::DpdkEnvironment& environment, const std::vector<std::string>& devices,
    size_t workers) {
  static std::FILE* const kLines = process::ForeignStream("DPDK");
  const Status started = port::StartDpdk(environment, kLines);
  if (!started.ok()) return started;
  return port::OpenDmaCopyEngine(devices, workers);
}

}  // namespace rocegw::daemon
