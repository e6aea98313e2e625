// SPDX-License-Identifier: Apache-2.0
// State of one connection and one id for a gateway that takes over
// (gateway/hand_over/state_stream.h).
#pragma once

#include "gateway/cm/cm_id.h"
#include "gateway/cm/connection/connection.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::cm {

void HandOver(hand_over::StateStream& state, Connection& connection);
void HandOver(hand_over::StateStream& state, Id& id);

}  // namespace rocegw::cm
