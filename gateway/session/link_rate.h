// SPDX-License-Identifier: Apache-2.0
// How fast a port is in the words of ibv_query_port: lanes times the rate of a lane. Pure.
#pragma once

#include <cstdint>

namespace rocegw::session {

struct LinkRate {
  uint8_t width;  // ibv_port_attr::active_width
  uint8_t speed;  // ibv_port_attr::active_speed
};

// As Linux says it of Ethernet devices (ib_get_eth_speed), with the least rate that is not below
// the link's. 0: the interface does not tell, which counts as 10 Gbit/s.
LinkRate RateOf(uint64_t bytes_per_second);

}  // namespace rocegw::session
