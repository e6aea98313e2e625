// SPDX-License-Identifier: Apache-2.0
// Destination of a queue pair's channel: the peer gateway as discovery found it
// (cm/path/discovery.h), and the worker there that owns the queue pair's peer. Plain data; made by
// the control thread, sent to workers in control messages.
#pragma once

#include <cstdint>

#include "gateway/base/ids.h"
#include "gateway/wire/gid.h"

namespace rocegw::verbs {

struct ChannelTarget {
  wire::Gid peer;
  Qpn acceptor;              // QPN at which that worker accepts channels
  uint32_t peer_worker = 0;  // worker that owns the bucket of the destination QPN
  uint32_t instance = 0;     // instance of the peer gateway; changes when it restarts
  uint32_t features = 0;     // wire::GatewayOption bits of the peer
  uint32_t window = 0;       // bytes that the peer's worker can receive in a burst

  bool operator==(const ChannelTarget&) const = default;
};

}  // namespace rocegw::verbs
