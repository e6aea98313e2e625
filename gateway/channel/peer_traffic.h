// SPDX-License-Identifier: Apache-2.0
// Traffic sums of a worker's channels to one address, closed channels included. Values; any thread.
#pragma once

#include <cstdint>

#include "gateway/base/time.h"
#include "gateway/wire/gid.h"

namespace rocegw::channel {

struct PeerTraffic {
  wire::Gid peer;  // 0: sum of peers beyond the limit
  uint64_t arrived_bytes = 0;
  uint64_t resent_packets = 0;
  // Open channels.
  uint32_t channels = 0;
  uint64_t in_flight_bytes = 0;
  Duration rtts;              // sum of the smoothed round trips
  uint32_t channels_rtt = 0;  // channels with a known round trip
};

}  // namespace rocegw::channel
