// SPDX-License-Identifier: Apache-2.0
#include "gateway/channel/acceptor/opening_limits.h"

#include <algorithm>
#include <numeric>

namespace rocegw::channel {

namespace {
// Grace time of a stranger's channel that no queue pair here uses, before it may be closed for
// others.
constexpr Duration kIdleGrace = Seconds(5);
// New channels that an address may open on a worker, each second and at once: more than a peer with
// the most workers and paths has after a restart.
constexpr uint32_t kOpeningRate = 128;
constexpr uint32_t kOpeningBurst = 2048;
}  // namespace

OpeningLimits::OpeningLimits(const ChannelTable& table)
    : table_(table), openings_({}, kOpeningRate, kOpeningBurst) {}

void OpeningLimits::Use(const Bounds& bounds, const SecretKey& secret) {
  bounds_ = bounds;
  openings_ = SourceLimits(secret, kOpeningRate, kOpeningBurst);
}

void OpeningLimits::SetMember(const wire::Gid& peer, bool member) {
  if (member)
    members_.insert(peer);
  else
    members_.erase(peer);
}

// Counts limits per network where one host may own all addresses of it: an IPv6 subnet, except
// link-local addresses.
uint32_t OpeningLimits::PlaceOf(const wire::Gid& peer) const {
  wire::Gid prefix = peer;
  if (!peer.IsV4() && !(peer.bytes[0] == 0xFE && (peer.bytes[1] & 0xC0) == 0x80))
    std::fill(prefix.bytes.begin() + 8, prefix.bytes.end(), uint8_t{0});
  return table_.HashOf(prefix, {});
}

bool OpeningLimits::DemandsCookie(const wire::Gid& peer) {
  if (HalfOpenOf(peer) >= bounds_.half_open) return true;
  const size_t all = std::accumulate(half_open_of_.begin(), half_open_of_.end(), size_t{0});
  return all >= table_.number_count() / 4;
}

bool OpeningLimits::TakesNew(const wire::Gid& peer, bool authentic, TimePoint now) {
  const bool has_share = authentic || members_.contains(peer) || IdleOf(peer) < bounds_.idle;
  return has_share && openings_.Take(peer.bytes, now);
}

void OpeningLimits::AddHalfOpen(Channel& channel) {
  if (!channel.half_open() || channel.counted) return;
  channel.counted = true;
  ++HalfOpenOf(channel.peer());
  half_open_.push_back({channel.slot(), channel.epoch()});
}

void OpeningLimits::SettleHalfOpen(Channel& channel) {
  if (!channel.counted) return;
  channel.counted = false;
  --HalfOpenOf(channel.peer());
  // Drops finished entries at the front; an entry behind an unfinished one stays for seconds.
  while (!half_open_.empty()) {
    const Channel* first = table_.At(half_open_.front().slot);
    if (first != nullptr && first->epoch() == half_open_.front().epoch && first->counted) return;
    half_open_.pop_front();
  }
  // Half-open channels come in bursts: the memory is released.
  half_open_ = {};
}

bool OpeningLimits::AddIdle(Channel& channel, TimePoint now) {
  if (channel.used() || channel.authenticated() || members_.contains(channel.peer())) return true;
  if (IdleOf(channel.peer()) >= bounds_.idle) return false;
  channel.idle_of_stranger = true;
  ++IdleOf(channel.peer());
  idle_.push_back({channel.slot(), now});
  return true;
}

void OpeningLimits::SettleIdle(Channel& channel) {
  if (!channel.idle_of_stranger) return;
  channel.idle_of_stranger = false;
  --IdleOf(channel.peer());
  std::erase_if(idle_, [&](const Idle& idle) { return idle.slot == channel.slot(); });
}

Channel* OpeningLimits::OldestHalfOpen() {
  while (!half_open_.empty()) {
    // The front entry is always counted.
    Channel& oldest = *table_.At(half_open_.front().slot);
    if (oldest.half_open()) return &oldest;
    SettleHalfOpen(oldest);
  }
  return nullptr;
}

Channel* OpeningLimits::OldestIdle(TimePoint now) {
  while (!idle_.empty() && idle_.front().since + kIdleGrace <= now) {
    Channel& oldest = *table_.At(idle_.front().slot);
    if (!oldest.used() && !members_.contains(oldest.peer())) return &oldest;
    SettleIdle(oldest);
  }
  return nullptr;
}

}  // namespace rocegw::channel
