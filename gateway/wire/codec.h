// SPDX-License-Identifier: Apache-2.0
// Conversion between the bytes of a UDP payload and header values. Decoding validates everything
// that needs no queue pair; encoding writes headers in front of a payload. Pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "gateway/metrics/drop_reason.h"
#include "gateway/wire/datagram.h"
#include "gateway/wire/headers.h"

namespace rocegw::wire {

struct RxPacket {
  Headers headers;
  const OpcodeTraits* traits = nullptr;
  // Payload without pad; points into the datagram. For a channel packet it begins with the
  // extension header (channel_header.h).
  std::span<const uint8_t> payload;
  RxMeta meta;
  // The packet came in a sealed datagram of its channel, and the tag was right.
  bool verified = false;
};

// Decodes a datagram. Returns kNone, or the reason for which the datagram is dropped. Order of
// checks: length, version, opcode, the opcode's rules for pad and payload, P_Key, ICRC. `out` is
// complete only with kNone. out.meta.ip_id is the ID recovered from the ICRC if the port could not
// see it.
[[nodiscard]] metrics::DropReason Decode(const RxDatagram& datagram, RxPacket& out);

// Returns the length that EncodeHeaders writes for this opcode.
size_t HeaderLength(Opcode opcode);

// Writes BTH and extended headers at `out` (space for kMaxHeaderLength) and returns their length.
size_t EncodeHeaders(const Headers& headers, uint8_t* out);

}  // namespace rocegw::wire
