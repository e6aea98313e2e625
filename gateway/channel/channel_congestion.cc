// SPDX-License-Identifier: Apache-2.0
// Congestion control of a worker's channels by policy: reports what each channel observes, and
// switches the algorithm when the policy's choice changes. Both ends must allow an algorithm;
// otherwise the channel keeps the best that they have in common.
#include "gateway/channel/channel_set.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::channel {

flow::CcKind ChannelSet::CcFor(uint32_t common) const {
  auto best = flow::CcKind::kStatic;
  const uint32_t agreed = wire::AgreedOptions(common);
  for (size_t i = 0; i < flow::kCcKinds; ++i) {
    const auto kind = static_cast<flow::CcKind>(i);
    if ((agreed & flow::OptionOf(kind)) != 0) best = kind;
  }
  const flow::CcKind wanted = class_ ? class_->current() : flow::CcKind::kCount;
  const bool both = wanted != flow::CcKind::kCount && (common & flow::OptionOf(wanted)) != 0;
  return both ? wanted : best;
}

bool ChannelSet::LookAtCongestion(TimePoint now) {
  if (!class_) return false;
  bool changed = false;
  class_->ChangeSome(table_.size(), [&](size_t place) {
    Channel* const channel = table_.At(static_cast<uint32_t>(place));
    if (channel == nullptr || channel->state() != ChannelState::kOpen) return;
    channel->SwitchCc(CcFor(channel->common()), now);
    // The new algorithm may allow sending now.
    channel->Due();
    changed = true;
  });
  if (!class_->DueToLook(now)) return changed;
  counts_.losses = losses_before_ + counters_.channel_resent_packets.Read();
  const auto rtt_of = [&](size_t place) {
    const Channel* const channel = table_.At(static_cast<uint32_t>(place));
    return channel != nullptr ? &channel->rtt() : nullptr;
  };
  if (!class_->Look(counts_, table_.size(), rtt_of, now)) return changed;
  counters_.congestion_switch_events.Add();
  return true;
}

}  // namespace rocegw::channel
