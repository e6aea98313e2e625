// SPDX-License-Identifier: Apache-2.0
#include "gateway/channel/acceptor/peer_sequences.h"

namespace rocegw::channel {

bool PeerSequences::Take(const wire::Gid& peer, uint16_t worker,
                         const wire::ChannelControl& control) {
  ReplayWindow* const window = Use({peer, control.instance, worker});
  return window != nullptr && window->Take(control.sequence);
}

bool PeerSequences::MayHaveForgotten(const wire::Gid& peer, uint16_t worker,
                                     const wire::ChannelControl& control) const {
  if (by_speaker_.contains({peer, control.instance, worker})) return false;
  return by_speaker_.size() >= kMost || CountOf(peer) >= kMostOfAddress;
}

ReplayWindow* PeerSequences::Use(const Speaker& speaker) {
  const auto known = by_speaker_.find(speaker);
  if (known != by_speaker_.end()) {
    windows_.splice(windows_.end(), windows_, known->second);
  } else {
    if (!MakeRoom(speaker.peer)) return nullptr;
    by_speaker_.emplace(speaker, windows_.insert(windows_.end(), {.speaker = speaker}));
  }
  windows_.back().used = ++uses_;
  return &windows_.back().numbers;
}

size_t PeerSequences::CountOf(const wire::Gid& peer) const {
  size_t count = 0;
  for (auto at = by_speaker_.lower_bound({.peer = peer});
       at != by_speaker_.end() && at->first.peer == peer; ++at) {
    ++count;
  }
  return count;
}

bool PeerSequences::MakeRoom(const wire::Gid& peer) {
  const bool of_address = CountOf(peer) >= kMostOfAddress;
  if (!of_address && by_speaker_.size() < kMost) return true;
  const std::set<Speaker> in_use = InUse();
  auto oldest = windows_.begin();
  if (of_address) {
    oldest = windows_.end();
    for (auto at = by_speaker_.lower_bound({.peer = peer});
         at != by_speaker_.end() && at->first.peer == peer; ++at) {
      const bool older = oldest == windows_.end() || at->second->used < oldest->used;
      if (older && !in_use.contains(at->first)) oldest = at->second;
    }
  } else {
    while (oldest != windows_.end() && in_use.contains(oldest->speaker)) ++oldest;
  }
  if (oldest == windows_.end()) return false;
  by_speaker_.erase(oldest->speaker);
  windows_.erase(oldest);
  return true;
}

std::set<PeerSequences::Speaker> PeerSequences::InUse() const {
  std::set<Speaker> speakers;
  for (const auto& channel : channels_.slots()) {
    if (channel == nullptr || !channel->authenticated() || channel->half_open()) continue;
    speakers.insert({channel->peer(), channel->peer_instance(),
                     static_cast<uint16_t>(channel->key().peer_worker)});
  }
  return speakers;
}

}  // namespace rocegw::channel
