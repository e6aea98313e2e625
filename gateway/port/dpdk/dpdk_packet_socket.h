// SPDX-License-Identifier: Apache-2.0
// Packet socket (packet(7)) behind a receive queue of DPDK's af_packet driver, which does not
// expose it. Control thread, once the device runs.
#pragma once

#include <cstdint>

namespace rocegw::port {

// Returns a descriptor that is readable while the queue holds frames; the driver closes it. -1 if
// there is none: another driver, or another layout than in DPDK 22.11.
int PacketSocketOf(uint16_t device, uint16_t receive_queue);

// Makes the kernel deliver only frames of that UDP port, and those with a VLAN tag, instead of all
// traffic of the interface. An error is ignored: other frames are dropped later anyway.
void KeepToUdpPort(int packet_socket, uint16_t udp_port);

}  // namespace rocegw::port
