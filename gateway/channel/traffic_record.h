// SPDX-License-Identifier: Apache-2.0
// Traffic of a worker's channels by peer address, closed channels included. Belongs to its
// ChannelSet.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "gateway/channel/channel_table.h"
#include "gateway/channel/peer_traffic.h"

namespace rocegw::channel {

class TrafficRecord {
 public:
  // Begins the record of a channel that was added.
  void Begin(uint32_t slot) {
    if (slot >= arrived_bytes_.size()) arrived_bytes_.resize(slot + 1);
  }
  void Arrived(uint32_t slot, uint64_t bytes) { arrived_bytes_[slot] += bytes; }
  // Keeps the sums of a channel that will be removed. Forged addresses create many channels: one
  // that received nothing leaves no entry.
  void Keep(const Channel& channel);
  // Returns sums per peer address.
  std::vector<PeerTraffic> Rows(const ChannelTable& table) const;

  // hand_over/traffic_record_state.cc: of one channel, and of closed channels.
  void HandOver(hand_over::StateStream& state, uint32_t slot);
  void HandOverClosed(hand_over::StateStream& state);

 private:
  // Addresses with an entry of their own.
  static constexpr uint32_t kMostPeers = 4096;

  std::vector<uint64_t> arrived_bytes_;      // per slot, for its current channel
  std::map<wire::Gid, PeerTraffic> closed_;  // sums of closed channels
};

}  // namespace rocegw::channel
