// SPDX-License-Identifier: Apache-2.0
// What the daemon decides about its ports, as plain values. Sizes in bytes unless named otherwise;
// zero means "choose by the interface". Validated by the Create function that takes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gateway/wire/datagram.h"

namespace rocegw::port {

// Whether several packets may leave behind one header (UDP_SEGMENT). A network card that segments
// may give all segments one IPv4 ID, which would break their ICRC; software counts the ID up.
enum class Segmentation : uint8_t {
  kAuto,  // IPv6 always; IPv4 where the interface is software or has tx-udp-segmentation off
  kOn,
  kOff,
};

struct UdpPortConfig {
  // Interfaces that traffic uses: they bound the datagram length and decide on segmentation. The
  // sockets themselves serve every address of the network namespace.
  std::vector<std::string> interfaces;
  uint16_t udp_port = wire::kRocePort;
  size_t max_datagram = 0;  // 0: from the smallest MTU of the interfaces
  Segmentation segmentation = Segmentation::kAuto;
  size_t packets_per_queue = 1024;          // transmit buffers
  size_t receive_buffers = 16;              // of 64 KiB, per queue: what one recvmmsg may yield
  size_t socket_receive_buffer = 8U << 20;  // asked for; what the kernel grants is reported
  size_t socket_send_buffer = 4U << 20;
  size_t source_ports_per_queue = 256;  // sockets kept open for sending, per address family
};

}  // namespace rocegw::port
