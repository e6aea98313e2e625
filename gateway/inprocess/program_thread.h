// SPDX-License-Identifier: Apache-2.0
// Thread that has the program's descriptors, beside the engine's threads, which have a table of
// their own. Drivers of GPUs keep their devices among the program's descriptors, so this thread
// calls them. It never ends, because a call may wait for a device for ever.
#pragma once

#include <functional>
#include <memory>

#include "gateway/base/status.h"

namespace rocegw::inprocess {

class ProgramThread {
 public:
  // Call on a thread of the program.
  static StatusOr<std::shared_ptr<ProgramThread>> Start();

  // Runs a call there and returns when it has returned; at once on that thread itself.
  void Run(const std::function<void()>& call);

 private:
  struct Shared;
  explicit ProgramThread(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  const std::shared_ptr<Shared> shared_;
};

}  // namespace rocegw::inprocess
