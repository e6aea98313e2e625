// SPDX-License-Identifier: Apache-2.0
// Whom the work requests of endpoints name: an endpoint behind another gateway. Made by the control
// thread, kept by each worker for each session; a request that has begun needs it no more.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "gateway/base/ids.h"
#include "gateway/verbs/channel_target.h"
#include "gateway/wire/datagram.h"

namespace rocegw::transport {

struct Peer {
  uint32_t device = 0;  // index of the daemon's port that it is reached by
  Qpn endpoint;
  uint32_t key = 0;
  wire::Path path;
  verbs::ChannelTarget target;
};

// By the client's handle.
using PeerTable = std::unordered_map<uint32_t, Peer>;

}  // namespace rocegw::transport
