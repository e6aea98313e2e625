// SPDX-License-Identifier: Apache-2.0
// Bounds for channels that peers open: half-open ones, those of strangers (not members of the
// fleet) that no queue pair here uses, and openings per second of any address. Belongs to its
// ChannelSet.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <set>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/base/source_limits.h"
#include "gateway/base/time.h"
#include "gateway/channel/channel_table.h"
#include "gateway/wire/gid.h"

namespace rocegw::channel {

class OpeningLimits {
 public:
  struct Bounds {
    uint32_t half_open = 128;  // half-open channels per peer address
    uint32_t idle = 64;        // confirmed channels per stranger that no queue pair here uses
  };

  explicit OpeningLimits(const ChannelTable& table);
  // secret: key of the limits by address.
  void Use(const Bounds& bounds, const SecretKey& secret);

  void SetMember(const wire::Gid& peer, bool member);
  bool IsMember(const wire::Gid& peer) const { return members_.contains(peer); }
  const std::set<wire::Gid>& members() const { return members_; }
  bool has_members() const { return !members_.empty(); }

  // Returns true if the sender of an opening must prove its address before it gets a number. An
  // attacker with forged addresses can open channels but not confirm them: they are few, per
  // address and together, and end soon. Whoever opens a channel beyond the bounds must first repeat
  // a cookie that was sent to its address.
  bool DemandsCookie(const wire::Gid& peer);
  // Returns true if the peer may have another channel now. `authentic`: it has a key of the fleet.
  bool TakesNew(const wire::Gid& peer, bool authentic, TimePoint now);

  // Counts a half-open channel, and ends its counting.
  void AddHalfOpen(Channel& channel);
  void SettleHalfOpen(Channel& channel);
  // Counts an unused channel of a stranger, and ends its counting. A peer with a real address can
  // confirm channels without limit; it gets its share until a queue pair here uses the channel.
  // Returns false if the stranger has its share.
  bool AddIdle(Channel& channel, TimePoint now);
  void SettleIdle(Channel& channel);

  // Returns a channel that may be closed for another one; nullptr: none. `strangers_only`: no
  // half-open one.
  Channel* OldestHalfOpen();
  Channel* OldestIdle(TimePoint now);

  // Writes or reads the lists, not the members, which the control thread reports. The reader counts
  // again, because addresses that share a bound depend on its secret. Channels first.
  void HandOver(hand_over::StateStream& state);

 private:
  uint16_t& HalfOpenOf(const wire::Gid& peer) {
    return half_open_of_[PlaceOf(peer) % half_open_of_.size()];
  }
  uint16_t& IdleOf(const wire::Gid& peer) { return idle_of_[PlaceOf(peer) % idle_of_.size()]; }
  uint32_t PlaceOf(const wire::Gid& peer) const;

  const ChannelTable& table_;
  // The end of each channel costs a look at all queue pairs of the worker, so no peer,
  // member of the fleet or not, may open and end channels as fast as it can send.
  SourceLimits openings_;
  Bounds bounds_;
  std::set<wire::Gid> members_;
  // Half-open channels, oldest first. Entries may be stale: closed, confirmed, or another channel
  // in the slot.
  struct Opened {
    uint32_t slot;
    uint32_t epoch;
  };
  GrowingRing<Opened> half_open_;
  // Confirmed channels of strangers that no queue pair here has used, oldest first.
  struct Idle {
    uint32_t slot;
    TimePoint since;
  };
  std::deque<Idle> idle_;
  // Half-open channels per hash of the address. Addresses that collide share a limit.
  std::array<uint16_t, 256> half_open_of_{};
  std::array<uint16_t, 256> idle_of_{};
};

}  // namespace rocegw::channel
