// SPDX-License-Identifier: Apache-2.0
// Peer of an endpoint: an endpoint behind another gateway that work requests name. The control
// thread makes it; each worker keeps a copy for each session. A request needs it only until it
// begins.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "gateway/base/ids.h"
#include "gateway/verbs/channel_target.h"
#include "gateway/wire/datagram.h"

namespace rocegw::transport {

struct Peer {
  uint32_t device = 0;  // index of the daemon's port that reaches the peer
  Qpn endpoint;
  uint32_t key = 0;
  wire::Path path;
  verbs::ChannelTarget target;
};

// Peers by the client's handle.
using PeerTable = std::unordered_map<uint32_t, Peer>;

}  // namespace rocegw::transport
