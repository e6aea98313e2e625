// SPDX-License-Identifier: Apache-2.0
#include "gateway/take_over/gateway_state.h"

namespace rocegw::take_over {

void GatewayState::HandOver(hand_over::StateStream& state) {
  const hand_over::StateRecord record(state, hand_over::StateKind::kGateway);
  auto& [since_ns, drains, past] = *this;
  state(since_ns, drains);
  past.HandOver(state);
}

}  // namespace rocegw::take_over
