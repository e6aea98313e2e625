// SPDX-License-Identifier: Apache-2.0
// Sequence numbers of tagged control packets from peers with a key of the fleet: each is accepted
// once. The windows are bounded, so some are dropped. A window is never dropped while a channel
// uses it, and an opening whose window may have been dropped must prove that it is new, by a cookie
// (open_cookies.h). So what was recorded is not accepted again. Belongs to a ChannelSet.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <set>

#include "gateway/channel/acceptor/replay_window.h"
#include "gateway/channel/channel_table.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/gid.h"

namespace rocegw::channel {

class PeerSequences {
 public:
  // Limit of the windows of one address: 64 workers of two instances of its gateway.
  static constexpr size_t kMostOfAddress = 128;
  // Limit of all windows: 64 workers of each of 1024 gateways.
  static constexpr size_t kMost = 65536;

  explicit PeerSequences(const ChannelTable& channels) : channels_(channels) {}

  // Records the sequence number of a packet with a valid tag. Returns true if it is new. The window
  // of an ended instance is kept, so that its packets are not accepted again. At a limit the window
  // is dropped that no channel uses and that was not used for the longest time: peers restart more
  // often than this gateway. If channels use all, the packet counts as not new.
  bool Take(const wire::Gid& peer, uint16_t worker, const wire::ChannelControl& control);
  // Returns true if the sender has no window here, and may have had one: windows are dropped only
  // at a limit, and their number stays there.
  bool MayHaveForgotten(const wire::Gid& peer, uint16_t worker,
                        const wire::ChannelControl& control) const;

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

  // Returns the speaker's window, made if there is none, as the one that was used last; nullptr:
  // channels use all.
  ReplayWindow* Use(const Speaker& speaker);
  size_t CountOf(const wire::Gid& peer) const;
  // Drops the oldest unused window of the address if its share is used up, and of all at the limit.
  // Returns false if there is none.
  bool MakeRoom(const wire::Gid& peer);
  // Returns the workers of peers that channels lead to. Half-open channels do not count: whoever
  // forges or repeats packets can close them only.
  std::set<Speaker> InUse() const;

  const ChannelTable& channels_;
  Windows windows_;  // the one that was used last is at the back
  std::map<Speaker, Windows::iterator> by_speaker_;
  uint64_t uses_ = 0;
};

}  // namespace rocegw::channel
