// SPDX-License-Identifier: Apache-2.0
// Builder of plain RoCEv2 packets of a connected queue pair, for peers that are not gateways.
#pragma once

#include "gateway/port/packet_port.h"
#include "gateway/transport/qp_context.h"
#include "gateway/verbs/work_request.h"
#include "gateway/wire/headers.h"
#include "gateway/wire/opcode.h"

namespace rocegw::transport {

// Returns the opcode of a SEND or WRITE packet.
wire::Opcode DataOpcode(wire::Service service, const verbs::SendRequest& request, bool first,
                        bool last);

// Writes the headers, the pad and the length for `payload` bytes. Returns the address where the
// caller must put the payload; the packet is complete then. Fills in the destination, P_Key and pad
// count of `headers`, and replaces RC opcodes by XRC ones for an XRC queue pair.
uint8_t* BuildPacket(const QpContext& qp, wire::Headers& headers, uint32_t payload,
                     port::TxPacket& packet);

// Builds a CNP to the peer whose data arrived CE-marked.
void BuildCnp(const QpContext& qp, uint8_t traffic_class, port::TxPacket& packet);

}  // namespace rocegw::transport
