// SPDX-License-Identifier: Apache-2.0
// Rules that turn addresses into paths, as rdma_cm on Linux has them: path MTU from the netdev's,
// flow label from the ports, rdma_cm's address header for private data, and which addresses in a
// received one are acceptable. Pure functions.
#pragma once

#include <cstdint>

#include "gateway/cm/cm_types.h"
#include "gateway/wire/datagram.h"
#include "gateway/wire/mad.h"

namespace rocegw::cm {

// Largest RoCE payload (enum ibv_mtu) for packets of `mtu` bytes with the longest headers; 0: not
// even 256 bytes fit.
uint8_t PathMtuCode(uint32_t mtu);

// 20 bits: that of the source address when it has one, else from the two ports.
uint32_t FlowLabel(const Endpoint& source, const Endpoint& destination);

// Path of the connection's own MADs. Their source port is the sender's choice: one for all of a
// pair of hosts, so that they stay in order.
wire::Path MadPath(const wire::Gid& source, const wire::Gid& destination, uint8_t traffic_class,
                   uint8_t hop_limit);

wire::IpCmHeader MakeIpCmHeader(const Endpoint& source, const Endpoint& destination);

// Multicast, broadcast and zero addresses never; loopback only when the request came from this host
// itself.
bool AcceptableAddresses(const wire::IpCmHeader& header, bool from_self);

// Service IDs of the IP port spaces; false for any other.
bool ParseServiceId(uint64_t service_id, PortSpace& space, uint16_t& port);

}  // namespace rocegw::cm
