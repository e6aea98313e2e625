// SPDX-License-Identifier: Apache-2.0
// State of the connection manager's value types for a gateway that takes over
// (gateway/hand_over/state_stream.h).
#pragma once

#include "gateway/cm/cm_types.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/wire/datagram.h"

namespace rocegw::cm {

inline void HandOver(hand_over::StateStream& state, wire::Gid& gid) { state.Bytes(gid.bytes); }
inline void HandOver(hand_over::StateStream& state, CmHandle& handle) {
  auto& [value] = handle;
  state(value);
}
void HandOver(hand_over::StateStream& state, wire::Path& path);
void HandOver(hand_over::StateStream& state, wire::RxMeta& meta);
void HandOver(hand_over::StateStream& state, Endpoint& endpoint);
void HandOver(hand_over::StateStream& state, PortSpace& space);
void HandOver(hand_over::StateStream& state, QpType& type);
void HandOver(hand_over::StateStream& state, ConnectParams& params);
void HandOver(hand_over::StateStream& state, Ece& ece);

}  // namespace rocegw::cm
