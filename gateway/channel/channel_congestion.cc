// SPDX-License-Identifier: Apache-2.0
// The class of a worker's channels: what its congestion control observes, and what follows when the
// policy's selector wants another algorithm. A channel runs what both of its ends allow; where that
// is not the policy's choice, it keeps the best that they have in common.
#include <algorithm>

#include "gateway/channel/channel_set.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::channel {
namespace {

// Round trips are taken from so many channels per look, and so many change their algorithm at once.
constexpr size_t kSamples = 32;
constexpr size_t kSwitches = 256;

uint32_t OptionOf(flow::CcKind kind) {
  return wire::kOptionCcStatic << static_cast<uint32_t>(kind);
}

}  // namespace

flow::CcConfig ChannelSet::CcFor(uint32_t common) const {
  flow::CcConfig cc = cc_;
  cc.kind = flow::CcKind::kStatic;
  const uint32_t agreed = wire::AgreedOptions(common);
  for (size_t i = 0; i < flow::kCcKinds; ++i) {
    const auto kind = static_cast<flow::CcKind>(i);
    if ((agreed & OptionOf(kind)) != 0) cc.kind = kind;
  }
  const flow::CcKind wanted = selector_ ? selector_->current() : flow::CcKind::kCount;
  if (wanted != flow::CcKind::kCount && (common & OptionOf(wanted)) != 0) cc.kind = wanted;
  return cc;
}

void ChannelSet::ObserveCongestion() {
  counts_.losses = counters_.channel_resent_packets.Read();
  counts_.rtt = counts_.shortest = Duration{};
  int64_t samples = 0;
  for (size_t i = 0; i < std::min(kSamples, slots_.size()); ++i) {
    sample_next_ = (sample_next_ + 1) % slots_.size();
    const Channel* const channel = slots_[sample_next_].get();
    if (channel == nullptr || !channel->out().rtt().has_sample()) continue;
    ++samples;
    counts_.rtt = counts_.rtt + channel->out().rtt().smoothed();
    counts_.shortest = counts_.shortest + channel->out().rtt().minimum();
  }
  if (samples > 1) {
    counts_.rtt = counts_.rtt / samples;
    counts_.shortest = counts_.shortest / samples;
  }
}

bool ChannelSet::LookAtCongestion(TimePoint now) {
  if (!selector_) return false;
  bool changed = false;
  for (size_t i = 0; i < kSwitches && switch_next_ < slots_.size(); ++i, ++switch_next_) {
    Channel* const channel = slots_[switch_next_].get();
    if (channel == nullptr || channel->state() != ChannelState::kOpen) continue;
    channel->SwitchCc(CcFor(channel->common()), now);
    // The new gate may be open.
    channel->Due();
    changed = true;
  }
  if (now < next_look_) return changed;
  next_look_ = now + policy_.interval;
  const flow::CcKind before = selector_->current();
  ObserveCongestion();
  if (selector_->Look(counts_, now) == before) return changed;
  counters_.congestion_switch_events.Add();
  switch_next_ = 0;
  return true;
}

}  // namespace rocegw::channel
