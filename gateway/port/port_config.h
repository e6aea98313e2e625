// SPDX-License-Identifier: Apache-2.0
// What the daemon decides about its ports, as plain values. Sizes in bytes unless named otherwise;
// zero means "choose by the interface". Validated by the Create function that takes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gateway/port/frame.h"
#include "gateway/port/kernel/interface_address.h"
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
  // The kernel runs the steering table's program. Otherwise it hashes the addresses, and whoever
  // receives hands over.
  bool steer_by_qpn = true;
  size_t packets_per_queue = 1024;          // transmit buffers
  size_t receive_buffers = 16;              // of 64 KiB, per queue: what one recvmmsg may yield
  size_t socket_receive_buffer = 8U << 20;  // asked for; what the kernel grants is reported
  size_t socket_send_buffer = 4U << 20;
  size_t source_ports_per_queue = 256;  // sockets kept open for sending, per address family
  // Drops packets that came over loopback, or from the address they are for, unless this port sent
  // them: no other program of the host speaks for the gateway.
  bool refuse_foreign_loopback = false;
  // Set: receives for this address alone, on one queue; multicast groups are refused then.
  std::optional<wire::Gid> only_address;
};

struct StaticNeighbour {
  wire::Gid address;
  MacAddress mac{};
};

// The network of a DPDK device that the kernel does not know.
struct StaticNetwork {
  std::vector<InterfaceAddress> addresses;  // with their prefix lengths
  wire::Gid router_ipv4;                    // zero: only what the prefixes cover can be reached
  wire::Gid router_ipv6;
  std::vector<StaticNeighbour> neighbours;  // never asked for
};

struct DpdkPortConfig {
  // A DPDK device: "net_memif0,role=server", "0000:03:00.0". AfPacketDevice() makes the one for an
  // interface shared with the kernel.
  std::string device;
  // Set: shared with the kernel, whose addresses, routes and neighbours on this interface are used.
  // Empty: `network`, `mac` and `mtu` say what the kernel would.
  std::string interface;
  StaticNetwork network;
  MacAddress mac{};  // zero: the device's
  size_t mtu = 1500;
  uint16_t vlan = 0;  // frames have its tag; 0: none
  uint16_t udp_port = wire::kRocePort;
  bool udp_checksum = false;        // true: for networks that drop IPv6 packets without one
  size_t packets_per_queue = 1024;  // transmit buffers
  size_t receive_buffers = 2048;    // per queue
  size_t descriptors = 512;         // asked of the device, per queue and direction
};

struct DpdkEnvironment {
  bool huge_pages = true;              // when the system has memory_mb of free ones
  size_t memory_mb = 256;              // taken of ordinary pages
  std::vector<std::string> arguments;  // appended to DPDK's
};

}  // namespace rocegw::port
