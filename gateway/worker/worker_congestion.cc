// SPDX-License-Identifier: Apache-2.0
// Class of native connections of a worker: what its congestion control observes, and the switch
// when the policy chooses another algorithm.
#include "gateway/worker/worker.h"

namespace rocegw::worker {

flow::CcConfig Worker::CongestionOf(const verbs::QpRareConfig& config) const {
  flow::CcConfig congestion = options_.congestion;
  congestion.kind = congestion_.current();
  if (config.window_bytes != 0) congestion.window_bytes = config.window_bytes;
  return congestion;
}

void Worker::LookAtCongestion(TimePoint now) {
  congestion_.ChangeSome(slots_.size(), [&](size_t place) {
    QpSlot& slot = slots_[place];
    if (slot.qp == nullptr) return;
    slot.qp->SwitchCc(CongestionOf(slot.qp->context().rare), now);
    // The new algorithm's gate may be open.
    if (slot.session != nullptr) MakeRunnable(slot, slot.qp->context().handle);
  });
  if (!congestion_.DueToLook(now)) return;
  const flow::CcCounts counts{.acked_bytes = counters_.tx_bytes.Read(),
                              .cnps = counters_.cnp_rx_packets.Read(),
                              .losses = counters_.retransmit_packets.Read()};
  const auto rtt_of = [&](size_t place) {
    const QpSlot& slot = slots_[place];
    return slot.qp != nullptr ? slot.qp->rtt() : nullptr;
  };
  if (congestion_.Look(counts, slots_.size(), rtt_of, now))
    counters_.congestion_switch_events.Add();
}

}  // namespace rocegw::worker
