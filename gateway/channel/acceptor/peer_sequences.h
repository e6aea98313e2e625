// SPDX-License-Identifier: Apache-2.0
// Sequence numbers of tagged control packets from peers with a key of the fleet: each is accepted
// once. Belongs to a ChannelSet.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>

#include "gateway/channel/acceptor/replay_window.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/gid.h"

namespace rocegw::channel {

class PeerSequences {
 public:
  // Limit of the windows of one address: 64 workers of two instances of its gateway.
  static constexpr size_t kMostOfAddress = 128;
  // Limit of all windows: 64 workers of each of 1024 gateways.
  static constexpr size_t kMost = 65536;

  // Records the sequence number of a packet with a valid tag. Returns true if it is new. The window
  // of an ended instance is kept, so that its packets are not accepted again. At a limit the window
  // that was not used for the longest time is dropped: peers restart more often than this gateway.
  bool Take(const wire::Gid& peer, uint16_t worker, const wire::ChannelControl& control);

  size_t size() const { return by_speaker_.size(); }
  // Writes or reads the state (hand_over/channel_set_state.cc).
  void HandOver(hand_over::StateStream& state);

 private:
  // Worker of a peer, during one run of its gateway.
  struct Speaker {
    wire::Gid peer;
    uint32_t instance = 0;
    uint16_t worker = 0;
    auto operator<=>(const Speaker&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  struct Window {
    Speaker speaker;
    ReplayWindow numbers;
    uint64_t used = 0;  // grows with the time of the last use
  };
  using Windows = std::list<Window>;

  // Returns the speaker's window, made if there is none, as the one that was used last.
  ReplayWindow& Use(const Speaker& speaker);
  // Drops the oldest window of the address if its share is used up, and of all at the limit.
  void MakeRoom(const wire::Gid& peer);

  Windows windows_;  // the one that was used last is at the back
  std::map<Speaker, Windows::iterator> by_speaker_;
  uint64_t uses_ = 0;
};

}  // namespace rocegw::channel
