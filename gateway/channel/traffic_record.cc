// SPDX-License-Identifier: Apache-2.0
#include "gateway/channel/traffic_record.h"

#include <utility>

namespace rocegw::channel {

void TrafficRecord::Keep(const Channel& channel) {
  const uint64_t bytes = std::exchange(arrived_bytes_[channel.slot()], 0);
  const uint32_t resent = channel.Snapshot().resent;
  if (bytes == 0 && resent == 0) return;
  const bool room = closed_.size() < kMostPeers || closed_.contains(channel.peer());
  PeerTraffic& closed = closed_[room ? channel.peer() : wire::Gid()];
  closed.arrived_bytes += bytes;
  closed.resent_packets += resent;
}

std::vector<PeerTraffic> TrafficRecord::Rows(const ChannelTable& table) const {
  std::map<wire::Gid, PeerTraffic> all = closed_;
  for (const auto& channel : table.slots()) {
    if (channel == nullptr) continue;
    const ChannelSnapshot now = channel->Snapshot();
    PeerTraffic& peer = all[channel->peer()];
    peer.arrived_bytes += arrived_bytes_[channel->slot()];
    peer.resent_packets += now.resent;
    peer.channels += now.state == ChannelState::kOpen ? 1 : 0;
    peer.in_flight_bytes += now.in_flight;
    if (now.rtt.ns == 0) continue;
    peer.rtts = peer.rtts + now.rtt;
    ++peer.channels_rtt;
  }
  std::vector<PeerTraffic> rows;
  for (auto& [gid, peer] : all) {
    peer.peer = gid;
    rows.push_back(peer);
  }
  return rows;
}

}  // namespace rocegw::channel
