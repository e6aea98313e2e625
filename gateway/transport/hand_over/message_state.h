// SPDX-License-Identifier: Apache-2.0
// State of messages in flight, for a gateway that takes over (gateway/hand_over/state_stream.h).
#pragma once

#include "gateway/hand_over/state_stream.h"
#include "gateway/transport/in_flight.h"

namespace rocegw::transport {

void HandOver(hand_over::StateStream& state, MessageReply& reply);
void HandOver(hand_over::StateStream& state, ExecutedMessage& executed);
void HandOver(hand_over::StateStream& state, IncomingMessage& message);
// As above, with the ranges of the client's memory that the message has placed ahead of others.
void HandOver(hand_over::StateStream& state, IncomingMessage& message,
              std::vector<ByteRange>& placed);
void HandOver(hand_over::StateStream& state, MessagesInFlight& work);
// Indices below `end`.
void HandOver(hand_over::StateStream& state, RestingRing<uint32_t>& indices, uint32_t end);

}  // namespace rocegw::transport
