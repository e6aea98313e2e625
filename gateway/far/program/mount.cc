// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/mount.h"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <string>

#include "gateway/far/program/wait_for_stop.h"
#include "gateway/process/exit_code.h"
#include "gateway/process/sd_notify.h"
#include "gateway/process/startup.h"

namespace rocegw::far {

int Mount(FilesArguments arguments) {
  process::RaiseDescriptorLimit();
  const process::ServiceManager manager = process::ServiceManager::FromEnvironment();
  auto signals = process::BlockSignals();
  if (!signals.ok()) {
    spdlog::error(signals.status().text());
    return process::kEnvironment;
  }
  RemoteFiles files;
  if (const Status status = files.Start(arguments, signals->get()); !status.ok()) {
    if (status.error() == ECANCELED) return process::kOk;
    spdlog::error(status.text());
    return status.error() == EINVAL ? process::kUsage : process::kEnvironment;
  }
  const std::string summary = "mounted " + std::to_string(arguments.size) + " bytes of " +
                              std::to_string(arguments.donors.size()) + " donors at " +
                              arguments.directory;
  spdlog::info("{}", summary);
  manager.Ready(summary);
  WaitForStop(signals->get());
  manager.Stopping("unmounting");
  files.Stop();
  return process::kOk;
}

}  // namespace rocegw::far
