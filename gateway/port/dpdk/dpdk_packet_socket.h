// SPDX-License-Identifier: Apache-2.0
// The packet socket (packet(7)) behind a receive queue of DPDK's af_packet driver, which keeps it
// to itself. Control thread, once the device runs.
#pragma once

#include <cstdint>

namespace rocegw::port {

// Readable while the queue holds frames; the driver's to close. -1 when the device has none: it is
// of another driver, or the driver keeps it elsewhere than in DPDK 22.11.
int PacketSocketOf(uint16_t device, uint16_t receive_queue);

// From now on the kernel hands it frames of that UDP port alone, and those with a VLAN tag, instead
// of all that passes the interface. A frame that does not come is none that anybody misses, so what
// fails is not told.
void KeepToUdpPort(int packet_socket, uint16_t udp_port);

}  // namespace rocegw::port
