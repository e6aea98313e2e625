// SPDX-License-Identifier: Apache-2.0
// Choice of the worker of a new object: round-robin. Control thread.
#pragma once

#include <cstddef>
#include <optional>

#include "gateway/base/ids.h"
#include "gateway/loop/control_loop.h"
#include "gateway/session/reserve/qpn_allocator.h"

namespace rocegw::session {

class WorkerChoice {
 public:
  // `numbers` outlives the object.
  WorkerChoice(QpnAllocator& numbers, size_t workers) : numbers_(numbers), workers_(workers) {}

  // Takes a number for a new queue pair, and so its worker: workers round-robin, without those that
  // have no number left. Nothing: none left.
  struct TakenQpn {
    Qpn qpn;
    WorkerIndex worker = 0;
  };
  // `on`: only a number of that worker.
  std::optional<TakenQpn> TakeQpn(std::optional<WorkerIndex> on = std::nullopt) {
    const size_t count = on ? 1 : workers_;
    for (size_t i = 0; i < count; ++i) {
      const WorkerIndex worker = on ? *on : Next();
      if (const auto qpn = numbers_.Take(worker, ControlLoop::Now())) return TakenQpn{*qpn, worker};
    }
    return std::nullopt;
  }
  // Returns a worker for a new object.
  WorkerIndex Next() { return static_cast<WorkerIndex>(next_++ % workers_); }

 private:
  QpnAllocator& numbers_;
  const size_t workers_;
  size_t next_ = 0;
};

}  // namespace rocegw::session
