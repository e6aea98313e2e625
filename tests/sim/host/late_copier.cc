// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/host/late_copier.h"

#include <algorithm>
#include <utility>

namespace rocegw::sim {

bool LateCopier::Submit(WorkerIndex worker, std::unique_ptr<memory::Batch>& batch) {
  std::deque<Late>& lane = lanes_[worker];
  if (lane.size() == depth_) return false;
  const auto takes = static_cast<int64_t>(random_.Below(static_cast<uint64_t>(latest_.ns))) + 1;
  TimePoint done_at = network_.now() + Nanoseconds(takes);
  if (!lane.empty()) done_at = std::max(done_at, lane.back().done_at);
  lane.push_back({std::move(batch), done_at});
  return true;
}

std::unique_ptr<memory::Batch> LateCopier::Collect(WorkerIndex worker) {
  if (due(worker) > network_.now()) return nullptr;
  std::unique_ptr<memory::Batch> batch = std::move(lanes_[worker].front().batch);
  lanes_[worker].pop_front();
  memory::ExecuteBatch(memory_, *batch);
  return batch;
}

}  // namespace rocegw::sim
