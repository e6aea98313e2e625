// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/lifecycle.h"

#include <utility>

namespace rocegw::process {

void Lifecycle::Add(std::string part, std::function<Status()> start, std::function<void()> stop) {
  parts_.push_back({std::move(part), std::move(start), std::move(stop)});
}

Status Lifecycle::Start() {
  Status status = StartOnly();
  if (!status.ok()) Stop();
  return status;
}

Status Lifecycle::StartOnly() {
  while (started_ < parts_.size()) {
    if (on_start) on_start(parts_[started_].name);
    Status status = parts_[started_].start();
    if (!status.ok()) return status;
    if (on_started) on_started(parts_[started_].name);
    ++started_;
  }
  return OkStatus();
}

void Lifecycle::Stop() {
  while (started_ > 0) {
    --started_;
    if (on_stop) on_stop(parts_[started_].name);
    parts_[started_].stop();
  }
}

}  // namespace rocegw::process
