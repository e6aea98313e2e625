// SPDX-License-Identifier: Apache-2.0
// Sequence numbers of tagged control packets from peers with a key of the fleet: each is accepted
// once. Belongs to a ChannelSet.
#pragma once

#include <compare>
#include <cstdint>
#include <map>

#include "gateway/channel/acceptor/replay_window.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/gid.h"

namespace rocegw::channel {

class PeerSequences {
 public:
  // Records the sequence number of a packet with a valid tag. Returns true if it is new. The window
  // of an ended instance is kept, so that its packets are not accepted again.
  bool Take(const wire::Gid& peer, uint16_t worker, const wire::ChannelControl& control);

  // Writes or reads the state (hand_over/channel_set_state.cc).
  void HandOver(hand_over::StateStream& state);

 private:
  // Limit of the windows: 64 workers of each of 1024 gateways.
  static constexpr uint32_t kMost = 65536;

  // Worker of a peer, during one run of its gateway.
  struct Speaker {
    wire::Gid peer;
    uint32_t instance = 0;
    uint16_t worker = 0;
    auto operator<=>(const Speaker&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  std::map<Speaker, ReplayWindow> windows_;
};

}  // namespace rocegw::channel
