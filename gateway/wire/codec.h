// SPDX-License-Identifier: Apache-2.0
// Bytes of a UDP payload to header values and back. Decoding validates everything that needs no
// queue pair; encoding writes headers in front of a payload. Pure functions.
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
  // Without pad; points into the datagram. Of a channel packet it begins with the extension, which
  // channel_header.h decodes.
  std::span<const uint8_t> payload;
  RxMeta meta;
};

// kNone, or the one reason for which the datagram is dropped. Order of checks: length, version,
// opcode, pad and payload rules of the opcode, P_Key, ICRC. `out` is complete only with kNone.
// meta.ip_id of `out` holds the ID recovered from the ICRC when the port could not see it.
[[nodiscard]] metrics::DropReason Decode(const RxDatagram& datagram, RxPacket& out);

// Bytes that EncodeHeaders will write for this opcode.
size_t HeaderLength(Opcode opcode);

// Writes BTH and extended headers at `out` (room for kMaxHeaderLength); returns their length.
size_t EncodeHeaders(const Headers& headers, uint8_t* out);

}  // namespace rocegw::wire
