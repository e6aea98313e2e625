// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/objects/native_congestion.h"

namespace rocegw::worker {

NativeCongestion::NativeCongestion(const flow::CcConfig& config, const flow::CcPolicy& policy,
                                   QpTable& qps, QpActivity& activity,
                                   metrics::WorkerCounters& counters, TimePoint start)
    : config_(config),
      has_rules_(policy.count != 0),
      qps_(qps),
      activity_(activity),
      counters_(counters),
      class_(policy, config.kind, start) {}

flow::CcConfig NativeCongestion::ConfigOf(const verbs::QpRareConfig& qp) const {
  flow::CcConfig congestion = config_;
  congestion.kind = class_.current();
  if (qp.window_bytes != 0) congestion.window_bytes = qp.window_bytes;
  return congestion;
}

flow::CcCounts NativeCongestion::Counts() const {
  return {.acked_bytes = before_.acked_bytes + counters_.tx_bytes.Read(),
          .cnps = before_.cnps + counters_.cnp_rx_packets.Read(),
          .losses = before_.losses + counters_.retransmit_packets.Read()};
}

void NativeCongestion::LookByRules(TimePoint now) {
  const std::span<QpSlot> slots = qps_.slots();
  class_.ChangeSome(slots.size(), [&](size_t place) {
    QpSlot& slot = slots[place];
    if (slot.qp == nullptr) return;
    slot.qp->SwitchCc(ConfigOf(slot.qp->context().rare), now);
    // The new algorithm's gate may be open.
    if (slot.session != nullptr) activity_.MakeRunnable(slot, slot.qp->context().handle);
  });
  if (!class_.DueToLook(now)) return;
  const flow::CcCounts counts = Counts();
  const auto rtt_of = [&](size_t place) {
    const QpSlot& slot = slots[place];
    return slot.qp != nullptr ? slot.qp->rtt() : nullptr;
  };
  if (class_.Look(counts, slots.size(), rtt_of, now)) counters_.congestion_switch_events.Add();
}

}  // namespace rocegw::worker
