// SPDX-License-Identifier: Apache-2.0
// Sending side of a udp port queue. Packets wait in order. A flush joins runs of packets with one
// path and length (and one shorter last packet) into segmented sends, without copying, and passes
// many of them to sendmmsg(2) at once. The ICRC is sealed here, since a packet's position in its
// send is its IPv4 ID. EAGAIN keeps all packets; any other refusal drops the refused packets only.
// The kernel copies a payload by reference straight from the program's pages (kOutsideFrom).
// Belongs to one worker.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gateway/port/packet_pool.h"
#include "gateway/port/packet_port.h"
#include "gateway/port/port_counters.h"
#include "gateway/port/udp/udp_source_ports.h"

namespace rocegw::port {

// Shortest payload for which the additional pieces of a send do not cost the kernel more than the
// copy that they save (docs/benchmarks.md, "Sending without a copy").
inline constexpr uint32_t kOutsideFrom = 2048;

struct UdpTransmitterConfig {
  size_t packets = 1024;
  PortLimits limits;
  bool segment_ipv4 = false;
  bool segment_ipv6 = false;
  uint16_t udp_port = wire::kRocePort;
  unsigned interface_index = 0;  // for link-local and multicast destinations
  size_t source_ports = 256;
  size_t send_buffer_bytes = 0;
  OwnSourcePorts* own_ports = nullptr;  // list of open source ports; nullptr: no list
  const ReservedSourcePorts* reserved_ports = nullptr;  // nullptr: none
  uint32_t outside_from = kOutsideFrom;
};

// Returns how many of the first packets may leave in one segmented send; at least 1. Pure.
size_t SegmentRun(std::span<TxPacket* const> packets);

class UdpTransmitter {
 public:
  UdpTransmitter(const UdpTransmitterConfig& config, PortCounters& counters);

  TxPacket* Acquire();
  void Release(TxPacket* packet);
  size_t Transmit(std::span<TxPacket* const> packets);
  // Sends what the kernel takes now. Packets that are left refer to no payload.
  bool Flush();

  // Receive socket of the queue, which sends while no source port can be opened; -1: none.
  void SetReceiveSocket(int fd) { source_ports_.SetReceiveSocket(fd); }

  // Drops waiting packets and closes every socket; the next packet opens them again.
  void Reset();

  bool segments(bool ipv4) const { return ipv4 ? segment_ipv4_ : segment_ipv6_; }

 private:
  struct Slot : TxPacket {
    // IPv4 ID for which the ICRC was sealed; -1: not sealed. A refused send need not be sealed
    // again.
    int32_t sealed_id = -1;
    uint16_t sealed_port = 0;
  };
  static constexpr size_t kQueue = 512;
  static constexpr size_t kMessages = 64;  // messages per system call
  static constexpr size_t kControl = 128;  // bytes of control messages per message
  struct alignas(cmsghdr) Control {
    uint8_t bytes[kControl];
  };

  size_t waiting() const { return queue_.size() - head_; }
  bool Send();
  size_t BuildMessages(int& fd);
  size_t BuildMessage(size_t index, std::span<TxPacket* const> run, uint16_t port, iovec* vectors);
  static void Seal(Slot& slot, uint16_t ip_id, uint16_t port);
  static size_t Gather(std::span<TxPacket* const> run, iovec* vectors);
  void Retire(size_t packets);
  bool Recover(int error);

  const UdpTransmitterConfig config_;
  bool segment_ipv4_;
  bool segment_ipv6_;
  // Number of packets to send one by one because the kernel refused them as one segmented send. If
  // it takes the first one alone, it had refused the segmentation.
  size_t singles_ = 0;
  bool trial_ = false;
  PacketPool<Slot> pool_;
  std::vector<TxPacket*> queue_;  // from head_ on: waiting, oldest first
  size_t head_ = 0;
  UdpSourcePorts source_ports_;
  std::vector<mmsghdr> messages_;
  std::vector<sockaddr_storage> names_;
  std::vector<Control> controls_;
  std::vector<iovec> vectors_;
  std::vector<uint16_t> run_lengths_;
  PortCounters& counters_;
};

}  // namespace rocegw::port
