// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/receive/flood_guard.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "gateway/base/mix.h"

namespace rocegw::worker {

using port::FloodFilter;
using port::kAllPass;
using port::kFloodKinds;
using port::PassShare;

namespace {

// Ports get the filter anew after this time: sockets may have been opened anew.
constexpr Duration kAgain = Seconds(1);
// An estimate forgets half of what was in this time: a burst of one window does not make a flood.
constexpr double kHalfLife = static_cast<double>(FloodGuard::kWindow.ns) / 1e9;
// A filter that differs by less stays: making a program of it costs more.
constexpr double kLeastChange = 0.25;
constexpr double kAllPackets = 4294967296.0;
// The estimate needs some datagrams that pass.
constexpr double kLeastShare = 1.0 / 4096;

double PartOf(PassShare share) { return (static_cast<double>(share) + 1) / kAllPackets; }

PassShare ShareOf(double part) {
  if (part >= 1) return kAllPass;
  return static_cast<PassShare>(std::max(part, kLeastShare) * kAllPackets) - 1;
}

// Returns the level at which sources that send less get all, and the others this much, so that
// together they get `most` (max-min fairness).
double LevelOf(std::span<const double> rates, double most) {
  std::array<double, FloodFilter::kBuckets> sorted{};
  std::ranges::copy(rates, sorted.begin());
  std::ranges::sort(sorted);
  double left = most;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double level = left / static_cast<double>(sorted.size() - i);
    if (sorted[i] >= level) return level;
    left -= sorted[i];
  }
  return most;
}

bool Differ(PassShare a, PassShare b) {
  if ((a == kAllPass) != (b == kAllPass)) return true;
  return std::abs(PartOf(a) - PartOf(b)) > kLeastChange * PartOf(b);
}

}  // namespace

FloodGuard::FloodGuard(const SecretKey& secret) : random_(SipHash(secret, {}) | 1) {
  filter_.multiplier = static_cast<uint32_t>(Mix(random_)) | 1;
}

void FloodGuard::OnStray(const wire::Gid& source, port::FloodKind kind) {
  const auto index = static_cast<size_t>(kind);
  ++strays_;
  ++(filter_.IsKnown(source) ? of_known_[index] : of_strangers_[index][filter_.BucketOf(source)])
        .counted;
}

void FloodGuard::OnPeer(const wire::Gid& peer, TimePoint now) {
  const uint64_t hash = peer.MixInto(filter_.multiplier);
  Peer* place = nullptr;
  for (size_t i = 0; i < kProbes; ++i) {
    Peer& one = peers_[(hash + i) % kPlaces];
    if (one.address == peer) {
      one.last = now;
      return;
    }
    const bool kept = !one.address.IsZero() && now - one.last < kListEach * 2;
    if (place == nullptr && !kept) place = &one;
  }
  if (place != nullptr) *place = {peer, now};
}

bool FloodGuard::PeersWanted(TimePoint now) {
  if (!watching_ || now < next_list_) return false;
  next_list_ = now + kListEach;
  return true;
}

void FloodGuard::Rate::Judge(PassShare share, double seconds) {
  const double sent = counted / seconds / PartOf(share);
  per_second += (1 - std::exp2(-seconds / kHalfLife)) * (sent - per_second);
  counted = 0;
}

bool FloodGuard::Flooded(size_t kind) const {
  double strangers = 0;
  for (const Rate& rate : of_strangers_[kind]) strangers += rate.per_second;
  return strangers > kMostOfStrangers[kind] ||
         (kind < kMostOfKnown.size() && of_known_[kind].per_second > kMostOfKnown[kind]);
}

FloodFilter FloodGuard::MakeFilter(TimePoint now) const {
  FloodFilter wanted;
  wanted.multiplier = filter_.multiplier;
  for (const Peer& peer : peers_)
    if (!peer.address.IsZero() && now - peer.last < kPeerFor) wanted.Know(peer.address);
  for (size_t kind = 0; kind < kFloodKinds; ++kind) {
    std::array<double, FloodFilter::kBuckets> rates{};
    std::ranges::transform(of_strangers_[kind], rates.begin(), &Rate::per_second);
    const double level = LevelOf(rates, kMostOfStrangers[kind]);
    for (size_t bucket = 0; bucket < rates.size(); ++bucket)
      if (rates[bucket] > level) wanted.of_strangers[kind][bucket] = ShareOf(level / rates[bucket]);
    // Other datagrams of known sources belong to their connections, or only a look at them tells
    // that they do not.
    if (kind < kMostOfKnown.size())
      wanted.of_known[kind] = ShareOf(kMostOfKnown[kind] / of_known_[kind].per_second);
  }
  return wanted;
}

bool FloodGuard::Differs(const FloodFilter& wanted) const {
  if (!std::ranges::equal(wanted.known(), filter_.known())) return true;
  for (size_t kind = 0; kind < kFloodKinds; ++kind) {
    if (Differ(wanted.of_known[kind], filter_.of_known[kind])) return true;
    for (size_t bucket = 0; bucket < FloodFilter::kBuckets; ++bucket)
      if (Differ(wanted.of_strangers[kind][bucket], filter_.of_strangers[kind][bucket]))
        return true;
  }
  return false;
}

bool FloodGuard::Judge(TimePoint now) {
  // A window that began before the first stray tells too little.
  const Duration length = now - begun_;
  begun_ = now;
  next_look_ = now + kWindow;
  const bool first = length > kWindow * 4 && !watching_;
  const double seconds = static_cast<double>((first ? kWindow : length).ns) / 1e9;
  bool flooded = false;
  for (size_t kind = 0; kind < kFloodKinds; ++kind) {
    for (size_t bucket = 0; bucket < FloodFilter::kBuckets; ++bucket)
      of_strangers_[kind][bucket].Judge(filter_.of_strangers[kind][bucket], seconds);
    of_known_[kind].Judge(filter_.of_known[kind], seconds);
    flooded |= Flooded(kind);
  }
  strays_ = 0;
  const bool watched = watching_;
  watching_ = flooded;
  if (!flooded) {
    if (filter_.empty()) return false;
    const uint32_t multiplier = filter_.multiplier;
    filter_ = {};
    filter_.multiplier = multiplier;
    return true;
  }
  // The first window after the alarm is for the peers.
  if (!watched) return false;
  FloodFilter wanted = MakeFilter(now);
  if (!Differs(wanted) && now - applied_ < kAgain) return false;
  filter_ = std::move(wanted);
  applied_ = now;
  return true;
}

bool FloodGuard::Passes(const wire::Gid& source, std::span<const uint8_t> datagram) {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return filter_.Passes(source, datagram, static_cast<uint32_t>(random_ >> 32));
}

}  // namespace rocegw::worker
