// SPDX-License-Identifier: Apache-2.0
// Text of one line for any packet, for logs, rocegwctl and test failures. Allocates; not for the
// packet path.
#pragma once

#include <string>

#include "gateway/wire/codec.h"
#include "gateway/wire/gid.h"

namespace rocegw::wire {

// Returns text such as "192.0.2.1" or "2001:db8::1".
std::string ToString(const Gid& gid);

// Returns a line such as "192.0.2.1>192.0.2.2 RC WRITE First qp=0x000012 psn=7 ack va=0x7f00
// rkey=0x12345 len=65536 payload=4096".
std::string Describe(const RxPacket& packet);

// Returns "nak=psn-sequence", "rnr timer=14" or "syndrome=0x1f".
std::string SyndromeText(uint8_t syndrome);

// Describes a channel packet's extension, with a space in front. `body`: the bytes between BTH and
// pad.
std::string DescribeChannel(Opcode opcode, std::span<const uint8_t> body);

// Describes raw bytes; names the drop reason if they do not decode.
std::string Describe(const RxDatagram& datagram);

}  // namespace rocegw::wire
