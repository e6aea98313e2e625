// SPDX-License-Identifier: Apache-2.0
#include "gateway/channel/acceptor/peer_sequences.h"

namespace rocegw::channel {

bool PeerSequences::Take(const wire::Gid& peer, uint16_t worker,
                         const wire::ChannelControl& control) {
  const Speaker speaker{peer, control.instance, worker};
  auto known = windows_.find(speaker);
  if (known == windows_.end()) {
    if (windows_.size() >= kMost) return false;
    known = windows_.try_emplace(speaker).first;
  }
  return known->second.Take(control.sequence);
}

}  // namespace rocegw::channel
