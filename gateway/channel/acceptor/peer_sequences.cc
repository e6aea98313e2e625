// SPDX-License-Identifier: Apache-2.0
#include "gateway/channel/acceptor/peer_sequences.h"

namespace rocegw::channel {

bool PeerSequences::Take(const wire::Gid& peer, uint16_t worker,
                         const wire::ChannelControl& control) {
  return Use({peer, control.instance, worker}).Take(control.sequence);
}

ReplayWindow& PeerSequences::Use(const Speaker& speaker) {
  const auto known = by_speaker_.find(speaker);
  if (known != by_speaker_.end()) {
    windows_.splice(windows_.end(), windows_, known->second);
  } else {
    MakeRoom(speaker.peer);
    by_speaker_.emplace(speaker, windows_.insert(windows_.end(), {.speaker = speaker}));
  }
  windows_.back().used = ++uses_;
  return windows_.back().numbers;
}

void PeerSequences::MakeRoom(const wire::Gid& peer) {
  const auto first = by_speaker_.lower_bound({.peer = peer});
  auto oldest = first;
  size_t of_address = 0;
  for (auto at = first; at != by_speaker_.end() && at->first.peer == peer; ++at, ++of_address) {
    if (at->second->used < oldest->second->used) oldest = at;
  }
  if (of_address < kMostOfAddress) {
    if (by_speaker_.size() < kMost) return;
    oldest = by_speaker_.find(windows_.front().speaker);
  }
  windows_.erase(oldest->second);
  by_speaker_.erase(oldest);
}

}  // namespace rocegw::channel
