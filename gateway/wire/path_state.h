// SPDX-License-Identifier: Apache-2.0
// State of a path for a gateway that takes over (gateway/hand_over/state_stream.h).
#pragma once

#include "gateway/hand_over/state_stream.h"
#include "gateway/wire/datagram.h"

namespace rocegw::wire {

inline void HandOver(hand_over::StateStream& state, Path& path) {
  auto& [source, destination, source_port, traffic_class, hop_limit] = path;
  state.Bytes(source.bytes);
  state.Bytes(destination.bytes);
  state(source_port, traffic_class, hop_limit);
}

}  // namespace rocegw::wire
