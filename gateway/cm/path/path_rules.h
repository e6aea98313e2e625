// SPDX-License-Identifier: Apache-2.0
// Rules of rdma_cm on Linux that turn addresses into paths: path MTU from the netdev's MTU, flow
// label from the ports, the address header of private data, and which received addresses are
// acceptable. Pure functions.
#pragma once

#include <cstdint>

#include "gateway/cm/cm_types.h"
#include "gateway/wire/datagram.h"
#include "gateway/wire/mad.h"

namespace rocegw::cm {

// Returns the largest RoCE payload (enum ibv_mtu) for packets of `mtu` bytes with the longest
// headers; 0: less than 256 bytes fit.
uint8_t PathMtuCode(uint32_t mtu);

// Returns 20 bits: the label of the source address if it has one, else a value from the two ports.
uint32_t FlowLabel(const Endpoint& source, const Endpoint& destination);

// Returns the path of the connection's MADs. The source port is the sender's choice: it is the same
// for all MADs of a pair of hosts, so they stay in order.
wire::Path MadPath(const wire::Gid& source, const wire::Gid& destination, uint8_t traffic_class,
                   uint8_t hop_limit);

wire::IpCmHeader MakeIpCmHeader(const Endpoint& source, const Endpoint& destination);

// Returns false for multicast, broadcast and zero addresses, and for loopback unless the request
// came from this host.
bool AcceptableAddresses(const wire::IpCmHeader& header, bool from_self);

// Parses service IDs of the IP port spaces; returns false for any other.
bool ParseServiceId(uint64_t service_id, PortSpace& space, uint16_t& port);

}  // namespace rocegw::cm
