// SPDX-License-Identifier: Apache-2.0
// Instructions of the XDP program: gives UDP packets for one port at an own address, or at a
// multicast group, to the AF_XDP socket of their receive queue, and leaves every other frame to the
// kernel. Pure functions.
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <vector>

namespace rocegw::port {

struct XdpFilterMaps {
  int sockets = -1;    // XSKMAP by receive queue
  int addresses = -1;  // hash of own GIDs, 16 bytes each
};

// Frames that the program leaves to the kernel: with a VLAN tag in their bytes, with IPv4 options
// or IPv6 extension headers, IPv4 fragments, and frames of a receive queue without a socket.
std::vector<bpf_insn> XdpFilter(const XdpFilterMaps& maps, uint16_t udp_port);

}  // namespace rocegw::port
