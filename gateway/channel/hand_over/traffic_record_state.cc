// SPDX-License-Identifier: Apache-2.0
// Traffic of a worker's channels for a gateway that takes over (gateway/hand_over/state_stream.h).
#include "gateway/channel/traffic_record.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::channel {

using hand_over::StateStream;

void TrafficRecord::HandOver(StateStream& state, uint32_t slot) {
  if (state.reading()) Begin(slot);
  state(arrived_bytes_[slot]);
}

void TrafficRecord::HandOverClosed(StateStream& state) {
  auto& [arrived_bytes, closed] = *this;
  (void)arrived_bytes;  // handed over with their channels
  const uint32_t count = state.Count(closed.size(), kMostPeers + 1);  // and the rest
  auto one = closed.begin();
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    wire::Gid at = state.reading() ? wire::Gid{} : one->first;
    state.Bytes(at.bytes);
    PeerTraffic& traffic = closed[at];
    auto& [peer, arrived, resent, channels, in_flight, rtts, channels_rtt] = traffic;
    (void)peer, (void)channels, (void)in_flight, (void)rtts, (void)channels_rtt;  // open channels'
    state(arrived, resent);
    if (!state.reading()) ++one;
  }
}

}  // namespace rocegw::channel
