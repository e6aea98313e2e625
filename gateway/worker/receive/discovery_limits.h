// SPDX-License-Identifier: Apache-2.0
// Limits on discovery datagrams: a flood ends in the worker, not in the ring to the control thread,
// where it would push out what others send. Belongs to one worker.
#pragma once

#include <set>

#include "gateway/base/source_limits.h"
#include "gateway/base/timing/token_bucket.h"
#include "gateway/wire/datagram.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::worker {

class DiscoveryLimits {
 public:
  // secret: key of the limits by address.
  explicit DiscoveryLimits(const SecretKey& secret);

  // Adds or removes a peer that the gateway asks, or knows as a gateway. The control thread bounds
  // their number.
  void Know(const wire::Gid& peer, bool known);
  const std::set<wire::Gid>& known_peers() const { return known_peers_; }
  // Returns true if the control thread takes another discovery datagram of that address. `member`:
  // the fleet names it as a gateway.
  bool Take(const wire::Gid& source, bool member, TimePoint now);
  void HandOver(hand_over::StateStream& state);

 private:
  std::set<wire::Gid> known_peers_;
  // By address, members and known peers apart, and for all strangers together.
  SourceLimits of_known_;
  SourceLimits of_stranger_;
  TokenBucket of_strangers_;
};

}  // namespace rocegw::worker
