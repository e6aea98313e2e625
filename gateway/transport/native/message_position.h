// SPDX-License-Identifier: Apache-2.0
// Position of a request packet in its message (IBTA 9.7.4.1.2, 9.7.4.1.6), for the responders of
// the connected services. Pure functions.
#pragma once

#include "gateway/wire/codec.h"

namespace rocegw::transport {

enum class MessageKind : uint8_t { kNone, kSend, kWrite };

inline MessageKind KindOf(const wire::OpcodeTraits& traits) {
  if (traits.operation == wire::Operation::kSend) return MessageKind::kSend;
  return traits.operation == wire::Operation::kWrite ? MessageKind::kWrite : MessageKind::kNone;
}

// Returns true if the packet begins a message while none is open, or continues the `open` one.
inline bool Continues(const wire::OpcodeTraits& traits, MessageKind open) {
  return open == (traits.starts_message() ? MessageKind::kNone : KindOf(traits));
}

// Returns true if the payload has the length that the packet's position requires.
inline bool HasProperLength(const wire::RxPacket& packet, uint32_t mtu) {
  const size_t length = packet.payload.size();
  if (!packet.traits->ends_message()) return length == mtu;
  if (length > mtu) return false;
  return packet.traits->position != wire::Position::kLast || length != 0;
}

}  // namespace rocegw::transport
