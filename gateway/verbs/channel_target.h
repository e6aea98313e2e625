// SPDX-License-Identifier: Apache-2.0
// Where the channel of a queue pair leads: the other gateway as discovery found it
// (cm/discovery.h), and the worker there that owns the queue pair's peer. Plain data; the control
// thread makes it, worker messages carry it.
#pragma once

#include <cstdint>

#include "gateway/base/ids.h"
#include "gateway/wire/gid.h"

namespace rocegw::verbs {

struct ChannelTarget {
  wire::Gid peer;
  Qpn acceptor;              // takes channels for that worker
  uint32_t peer_worker = 0;  // that owns the bucket of the destination QPN
  uint32_t instance = 0;     // of the peer: another one means that it was restarted
  uint32_t features = 0;     // wire::GatewayOption bits of the peer
  uint32_t window = 0;       // bytes that the worker there can take at once

  bool operator==(const ChannelTarget&) const = default;
};

}  // namespace rocegw::verbs
