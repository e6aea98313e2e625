// SPDX-License-Identifier: Apache-2.0
// State of a gateway beside its objects, as one record. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gateway/base/time.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/take_over/history.h"

namespace rocegw::take_over {

struct GatewayState {
  // Time of CLOCK_MONOTONIC, which is the same in both processes, at which the running gateway
  // began to rest.
  int64_t quiet_since_ns = 0;
  bool drains_locally = false;
  History history;
  // Counters by name that no worker hands over, such as those of ports; only those above 0.
  std::map<std::string, uint64_t> counts;

  void HandOver(hand_over::StateStream& state);
};

}  // namespace rocegw::take_over
