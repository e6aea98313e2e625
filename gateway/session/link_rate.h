// SPDX-License-Identifier: Apache-2.0
// Speed of a port in the terms of ibv_query_port: lanes times the rate of a lane. Pure.
#pragma once

#include <cstdint>

namespace rocegw::session {

struct LinkRate {
  uint8_t width;  // ibv_port_attr::active_width
  uint8_t speed;  // ibv_port_attr::active_speed
};

// Returns what Linux reports for Ethernet devices (ib_get_eth_speed), with the smallest rate not
// below the link's. 0: unknown, which counts as 10 Gbit/s.
LinkRate RateOf(uint64_t bytes_per_second);

}  // namespace rocegw::session
