// SPDX-License-Identifier: Apache-2.0
// The class of native connections of a worker: what its congestion control observes, and what
// follows when the policy's selector wants another algorithm. Nothing is done at once for all
// queue pairs, since there may be many.
#include <algorithm>

#include "gateway/worker/worker.h"

namespace rocegw::worker {
namespace {

// Round trips are taken from so many queue pairs per look, and so many change their algorithm per
// iteration.
constexpr size_t kSamples = 32;
constexpr size_t kSwitches = 256;

}  // namespace

flow::CcConfig Worker::CongestionOf(const verbs::QpConfig& config) const {
  flow::CcConfig congestion = options_.congestion;
  congestion.kind = congestion_.current();
  if (config.window_bytes != 0) congestion.window_bytes = config.window_bytes;
  return congestion;
}

flow::CcCounts Worker::ObserveCongestion() {
  flow::CcCounts counts{.acked_bytes = counters_.tx_bytes.Read(),
                        .cnps = counters_.cnp_rx_packets.Read(),
                        .losses = counters_.retransmit_packets.Read()};
  int64_t samples = 0;
  for (size_t i = 0; i < std::min(kSamples, slots_.size()); ++i) {
    sample_next_ = (sample_next_ + 1) % slots_.size();
    const QpSlot& slot = slots_[sample_next_];
    const flow::RttEstimator* const rtt = slot.qp != nullptr ? slot.qp->rtt() : nullptr;
    if (rtt == nullptr || !rtt->has_sample()) continue;
    ++samples;
    counts.rtt = counts.rtt + rtt->smoothed();
    counts.shortest = counts.shortest + rtt->minimum();
  }
  if (samples > 1) {
    counts.rtt = counts.rtt / samples;
    counts.shortest = counts.shortest / samples;
  }
  return counts;
}

void Worker::LookAtCongestion(TimePoint now) {
  for (size_t i = 0; i < kSwitches && switch_next_ < slots_.size(); ++i, ++switch_next_) {
    QpSlot& slot = slots_[switch_next_];
    if (slot.qp == nullptr) continue;
    slot.qp->SwitchCc(CongestionOf(slot.qp->context().config), now);
    // The new gate may be open.
    if (slot.session != nullptr) MakeRunnable(slot, slot.qp->context().handle);
  }
  if (now < next_congestion_look_) return;
  next_congestion_look_ = now + options_.congestion_policy.interval;
  const flow::CcKind before = congestion_.current();
  if (congestion_.Look(ObserveCongestion(), now) == before) return;
  counters_.congestion_switch_events.Add();
  switch_next_ = 0;
}

}  // namespace rocegw::worker
