// SPDX-License-Identifier: Apache-2.0
// Copier of a simulated untrusted session (memory/copier.h) in virtual time: a batch executes some
// time after it was submitted, in the order of submission.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "gateway/memory/copier.h"
#include "tests/sim/network/network.h"
#include "tests/sim/network/random.h"

namespace rocegw::sim {

class LateCopier final : public memory::Copier {
 public:
  LateCopier(memory::MemorySpace& memory, Network& network, Duration latest, size_t workers,
             size_t depth)
      : memory_(memory),
        network_(network),
        latest_(latest),
        depth_(depth),
        random_(network.NextSeed()),
        lanes_(workers) {}

  bool Submit(WorkerIndex worker, std::unique_ptr<memory::Batch>& batch) override;
  std::unique_ptr<memory::Batch> Collect(WorkerIndex worker) override;
  void Stop() override {}

  // Returns when Collect has a batch; kNever: none was submitted.
  TimePoint due(WorkerIndex worker) const {
    return lanes_[worker].empty() ? kNever : lanes_[worker].front().done_at;
  }

 private:
  struct Late {
    std::unique_ptr<memory::Batch> batch;
    TimePoint done_at;
  };

  memory::MemorySpace& memory_;
  Network& network_;
  const Duration latest_;
  const size_t depth_;
  Random random_;
  std::vector<std::deque<Late>> lanes_;
};

}  // namespace rocegw::sim
