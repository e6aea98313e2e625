// SPDX-License-Identifier: Apache-2.0
// Copy engine of the workers: opened, measured and chosen at start. Control thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/datapath/config.h"
#include "gateway/memory/copy_engine.h"
#include "gateway/session/state/log_limiter.h"

namespace rocegw::datapath {

// Opens the devices of a configuration for so many workers.
using CopyEngineOpener = std::function<StatusOr<std::unique_ptr<memory::CopyEngine>>(
    const std::vector<std::string>& devices, size_t workers)>;

class WorkerCopies {
 public:
  // Opens the engine that the configuration names, and decides for each worker which copies it
  // makes. Fails only in mode `on`, if no worker can use an engine.
  Status Open(const CopyEngineConfig& config, const CopyEngineOpener& opener, size_t workers,
              const session::Log& log);
  // No worker uses the engine any more.
  void Close();

  // Returns settings without a queue for a worker whose copies the processor makes.
  memory::CopySettings SettingsOf(size_t worker) const {
    return worker < settings_.size() ? settings_[worker] : memory::CopySettings{};
  }

 private:
  memory::CopySettings Choose(const CopyEngineConfig& config, memory::CopyQueue& queue,
                              std::string& measured) const;

  std::unique_ptr<memory::CopyEngine> engine_;
  std::vector<memory::CopySettings> settings_;  // by worker
};

}  // namespace rocegw::datapath
