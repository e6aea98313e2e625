// SPDX-License-Identifier: Apache-2.0
// State of attributes and work requests for a gateway that takes over
// (gateway/hand_over/state_stream.h).
#pragma once

#include <span>

#include "gateway/hand_over/state_stream.h"
#include "gateway/verbs/work_request.h"

namespace rocegw::verbs {

void HandOver(hand_over::StateStream& state, QpAttributes& attributes);

// A request that is read finds its payload in the ring of `payload`.
void HandOver(hand_over::StateStream& state, SendRequest& request, const QpPayloadConfig& payload);
void HandOver(hand_over::StateStream& state, DatagramRequest& request,
              const QpPayloadConfig& payload);
void HandOver(hand_over::StateStream& state, ReceiveRequest& request);
// The request's SGE list, in a list of `sges.size()` entries.
void HandOver(hand_over::StateStream& state, std::span<rocegw_sge> sges, uint8_t& count);

}  // namespace rocegw::verbs
