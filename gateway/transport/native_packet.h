// SPDX-License-Identifier: Apache-2.0
// Builds plain RoCEv2 packets of a connected queue pair: the path between transport values and
// bytes towards peers that speak nothing else.
#pragma once

#include "gateway/port/packet_port.h"
#include "gateway/transport/qp_context.h"
#include "gateway/verbs/work_request.h"
#include "gateway/wire/headers.h"
#include "gateway/wire/opcode.h"

namespace rocegw::transport {

// Of a packet of a SEND or WRITE of a connected queue pair.
wire::Opcode DataOpcode(wire::Service service, const verbs::SendRequest& request, bool first,
                        bool last);

// Writes headers (destination, P_Key and pad count are filled in here, in `headers` itself, and of
// an XRC queue pair the codes of RC become those of its service), pad
// and length for `payload` bytes; returns where the payload goes. The packet is complete once those
// bytes are written.
uint8_t* BuildPacket(const QpContext& qp, wire::Headers& headers, uint32_t payload,
                     port::TxPacket& packet);

// A congestion notification to the peer, whose data has met congestion on its way here.
void BuildCnp(const QpContext& qp, uint8_t traffic_class, port::TxPacket& packet);

}  // namespace rocegw::transport
