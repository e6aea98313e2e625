// SPDX-License-Identifier: Apache-2.0
// Bounds for channels that peers open, for a gateway that takes over
// (gateway/hand_over/state_stream.h).
#include <set>

#include "gateway/channel/acceptor/opening_limits.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::channel {

using hand_over::StateStream;

namespace {
// Limits of lists that the numbers of channels bound otherwise.
constexpr uint32_t kMostOpened = 1u << 20;
}  // namespace

void OpeningLimits::HandOver(StateStream& state) {
  auto& [table, openings, bounds, members, half_open, idle, half_open_of, idle_of] = *this;
  (void)openings, (void)bounds, (void)members, (void)half_open_of, (void)idle_of;
  state.Ring(half_open, kMostOpened, [&](Opened& opened) {
    auto& [slot, epoch] = opened;
    state(slot, epoch);
    state.Require(slot < table_.size(), "channel is missing");
  });
  if (state.ok() && !half_open.empty()) {
    const auto& [slot, epoch] = half_open.front();
    const Channel* const first = table.At(slot);
    state.Require(first != nullptr && first->counted && first->epoch() == epoch,
                  "oldest half-open channel is missing");
  }
  const uint32_t count = state.Count(idle.size(), ChannelTable::kMostSlots);
  if (state.reading()) idle.assign(state.ok() ? count : 0, Idle{});
  std::set<uint32_t> known;
  for (Idle& one : idle) {
    auto& [slot, since] = one;
    state(slot, since);
    if (!state.Require(table.At(slot) != nullptr, "channel is missing")) continue;
    state.Require(table.At(slot)->idle_of_stranger && known.insert(slot).second,
                  "channel is not a stranger's");
  }
  if (!state.reading()) return;
  for (const auto& channel : table.slots()) {
    if (channel == nullptr) continue;
    if (channel->counted) ++HalfOpenOf(channel->peer());
    if (channel->idle_of_stranger) ++IdleOf(channel->peer());
  }
}

}  // namespace rocegw::channel
