// SPDX-License-Identifier: Apache-2.0
// Settings of the daemon's ports, as plain values. Sizes in bytes unless named otherwise; zero
// means "choose by the interface". Validated by the Create function that takes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gateway/port/frame.h"
#include "gateway/port/kernel/interface_address.h"
#include "gateway/port/packet_port.h"
#include "gateway/wire/datagram.h"

namespace rocegw::port {

// Use of segmented sends (UDP_SEGMENT), several packets behind one header. A network card that
// segments may give all segments one IPv4 ID, which would break their ICRC; software increments the
// ID.
enum class Segmentation : uint8_t {
  kAuto,  // IPv6 always; IPv4 if the interface is software or has tx-udp-segmentation off
  kOn,
  kOff,
};

struct UdpPortConfig {
  // Interfaces of the traffic: they bound the datagram length and decide on segmentation. The
  // sockets serve every address of the network namespace.
  std::vector<std::string> interfaces;
  uint16_t udp_port = wire::kRocePort;
  size_t max_datagram = 0;  // 0: from the smallest MTU of the interfaces
  Segmentation segmentation = Segmentation::kAuto;
  // True: the kernel runs the steering table's program. False: it hashes the addresses, and the
  // receiving worker hands packets over.
  bool steer_by_qpn = true;
  size_t packets_per_queue = kTransmitBuffers;
  size_t receive_buffers = 16;              // 64 KiB each, per queue: limit of one recvmmsg
  size_t socket_receive_buffer = 8U << 20;  // requested; the granted size is reported
  size_t socket_send_buffer = 4U << 20;
  size_t source_ports_per_queue = 256;  // sockets kept open for sending, per address family
  // Drops packets from loopback, or from the address that they are for, unless this port sent them:
  // no other program of the host can impersonate the gateway.
  bool refuse_foreign_loopback = false;
  // If set: receives for this address only, on one queue, and refuses multicast groups.
  std::optional<wire::Gid> only_address;
};

struct StaticNeighbour {
  wire::Gid address;
  MacAddress mac{};
};

// Network of a DPDK device that the kernel does not know.
struct StaticNetwork {
  std::vector<InterfaceAddress> addresses;  // with their prefix lengths
  wire::Gid router_ipv4;  // zero: only addresses within the prefixes are reachable
  wire::Gid router_ipv6;
  std::vector<StaticNeighbour> neighbours;  // never resolved
};

struct DpdkPortConfig {
  // DPDK device: "net_memif0,role=server", "0000:03:00.0". AfPacketDevice() returns the string for
  // an interface shared with the kernel.
  std::string device;
  // If set: shared with the kernel, whose addresses, routes and neighbours on this interface are
  // used. If empty: `network`, `mac` and `mtu` replace them.
  std::string interface;
  StaticNetwork network;
  MacAddress mac{};  // zero: the device's address
  size_t mtu = 1500;
  uint16_t vlan = 0;  // VLAN tag of its frames; 0: none
  uint16_t udp_port = wire::kRocePort;
  bool udp_checksum = false;  // true: for networks that drop IPv6 packets without one
  size_t packets_per_queue = kTransmitBuffers;
  size_t receive_buffers = 2048;  // per queue
  size_t descriptors = 512;       // requested from the device, per queue and direction
};

struct XdpPortConfig {
  std::string interface;  // shared with the kernel, which has its addresses, routes, neighbours
  uint16_t udp_port = wire::kRocePort;
  size_t packets_per_queue = kTransmitBuffers;
  size_t receive_buffers = 2048;  // per worker, each of 4 KiB
};

struct DpdkEnvironment {
  bool huge_pages = true;              // used if the system has memory_mb of free ones
  size_t memory_mb = 256;              // size with ordinary pages
  bool pci = false;                    // ports may open PCI devices, each by its address
  std::vector<std::string> arguments;  // appended to DPDK's arguments
};

}  // namespace rocegw::port
