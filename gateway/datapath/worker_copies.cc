// SPDX-License-Identifier: Apache-2.0
#include "gateway/datapath/worker_copies.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gateway/memory/copy_measurement.h"

namespace rocegw::datapath {
namespace {

// Without a measurement in favour of the engine, mode `on` gives it full packets only.
constexpr uint32_t kFullPacket = 4096;

}  // namespace

memory::CopySettings WorkerCopies::Choose(const CopyEngineConfig& config, memory::CopyQueue& queue,
                                          std::string& measured) const {
  const std::vector<memory::CopyTimes> times = memory::MeasureCopies(queue);
  memory::CopySettings settings;
  if (std::ranges::any_of(times, [](const memory::CopyTimes& time) {
        return time.by_engine >= memory::kCopyLost;
      })) {
    measured = "its copies fail";
    return settings;
  }
  const memory::CopyTimes& longest = times.back();
  measured = std::to_string(longest.bytes) + " bytes take the engine " +
             std::to_string(longest.by_engine.ns) + " ns and the processor " +
             std::to_string(longest.by_processor.ns) + " ns";
  const uint32_t worthwhile = memory::ShortestWorthwhile(times);
  if (config.mode == CopyEngineMode::kAuto && worthwhile == 0) return settings;
  settings.queue = &queue;
  settings.minimum_bytes = config.minimum_bytes != 0 ? config.minimum_bytes
                           : worthwhile != 0         ? worthwhile
                                                     : kFullPacket;
  return settings;
}

Status WorkerCopies::Open(const CopyEngineConfig& config, const CopyEngineOpener& opener,
                          size_t workers, const session::Log& log) {
  if (config.mode == CopyEngineMode::kOff) return OkStatus();
  const bool must = config.mode == CopyEngineMode::kOn;
  auto opened = opener ? opener(config.devices, workers)
                       : StatusOr<std::unique_ptr<memory::CopyEngine>>(
                             Status(ENOTSUP, "copy engine: this gateway has no driver for one"));
  if (!opened.ok()) {
    if (must) return {opened.status().error(), "copy_engine.mode on: " + opened.status().text()};
    log(session::Severity::kInfo, opened.status().text() + "; the processor copies");
    return OkStatus();
  }
  engine_ = std::move(*opened);
  for (size_t w = 0; w < engine_->queues(); ++w) {
    std::string measured;
    settings_.push_back(Choose(config, *engine_->queue(w), measured));
    const memory::CopySettings& chosen = settings_.back();
    std::string line = "copy engine " + engine_->devices() + ": worker ";
    line += std::to_string(w);
    if (chosen.queue == nullptr) {
      line += " copies nothing by it; ";
    } else {
      line += " copies ";
      line += std::to_string(chosen.minimum_bytes);
      line += " bytes and more by it; ";
    }
    log(session::Severity::kInfo, line + measured);
  }
  const bool used = std::ranges::any_of(
      settings_, [](const memory::CopySettings& one) { return one.queue != nullptr; });
  if (must && !used) return {EIO, "copy_engine.mode on: copies by " + engine_->devices() + " fail"};
  return OkStatus();
}

void WorkerCopies::Close() {
  settings_.clear();
  engine_.reset();
}

}  // namespace rocegw::datapath
