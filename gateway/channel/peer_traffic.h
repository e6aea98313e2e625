// SPDX-License-Identifier: Apache-2.0
// What the channels of a worker to one address have done, those included that are gone. Values; any
// thread.
#pragma once

#include <cstdint>

#include "gateway/base/time.h"
#include "gateway/wire/gid.h"

namespace rocegw::channel {

struct PeerTraffic {
  wire::Gid peer;  // 0: those that there was no room for
  uint64_t arrived_bytes = 0;
  uint64_t resent_packets = 0;
  // Of those that are there.
  uint32_t channels = 0;
  uint64_t in_flight_bytes = 0;
  Duration rtts;              // sum, smoothed each
  uint32_t channels_rtt = 0;  // whose is known
};

}  // namespace rocegw::channel
