// SPDX-License-Identifier: Apache-2.0
// Packet port: one queue of a network port, owned and called by one worker. Packets at this
// interface are UDP payloads (BTH first) with a path. The port writes the IP and UDP headers. The
// ICRC covers the IPv4 ID, so sealing it (wire/crc/icrc.h) is the port's last step.
//
// Ownership of a TxPacket: Acquire gives it to the caller. Transmit takes the first n packets and
// owns them; the rest stay with the caller, who offers them again or returns them with Release.
// Packets are not lost silently: back-pressure shows as n < size.
//
// Payload by reference: the payload of a packet may stay in memory that the gateway shares with a
// program (`outside`), if the port said so when it handed the packet out (`outside_from`). The
// program may change the bytes at any time; a packet whose bytes change after its ICRC was computed
// is dropped by its receiver and sent again. The gateway may unmap the memory after the worker's
// iteration. Therefore a port holds a reference from Transmit to Flush only: it has sent or copied
// the payloads of all its packets when Flush returns. The caller copies those of the packets that
// Transmit did not take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gateway/base/ids.h"
#include "gateway/port/flood_filter.h"
#include "gateway/port/frame.h"
#include "gateway/port/port_counters.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/datagram.h"

namespace rocegw::port {

// Transmit buffers of a port's queue, where nothing else is configured.
inline constexpr size_t kTransmitBuffers = 1024;

struct TxPacket {
  static constexpr uint32_t kNeverOutside = UINT32_MAX;

  uint8_t* data = nullptr;  // space for PortLimits::max_datagram bytes, ICRC included
  uint32_t length = 0;      // BTH to pad, without the ICRC
  // Shortest payload that the port prefers to send by reference. Set by the port.
  uint32_t outside_from = kNeverOutside;
  wire::OutsidePart outside;  // payload that the packet refers to; `data` has a gap in its place
  wire::KnownCrc known_crc;   // set if the payload's CRC was computed while copying
  wire::Path path;
  bool bundles = false;  // the peer takes it as an entry of a bundle (wire/channel_bundle.h)
  // Slot of the sending channel plus 1 if its datagrams are sealed; 0: leaves as it is.
  uint32_t seal = 0;
  // Pool that pays for the packet, set before Transmit: a port that holds packets back for lack of
  // a neighbour's address shares its space among pools.
  PoolTag pool;
  Qpn source_qpn;          // sending queue pair, which RC does not send; for captures
  void* cookie = nullptr;  // for the port

  // Forgets what not every use sets, before the port hands the packet out again.
  void Reset() {
    length = 0;
    outside.bytes = nullptr;
    known_crc = {};
    bundles = false;
    seal = 0;
  }

  bool refers() const { return outside.bytes != nullptr; }
  // Copies the payload that the packet refers to into the gap, which ends the reference.
  void Flatten() {
    if (!refers()) return;
    const uint32_t crc = wire::CrcCopy(0, data + outside.offset, outside.bytes, outside.length);
    known_crc = {outside.offset, outside.length, crc};
    outside.bytes = nullptr;
  }
};

struct PortLimits {
  // Bytes of UDP payload with ICRC that fit the interface's MTU behind an IPv4 header.
  size_t max_datagram = 0;
  size_t burst = 0;  // best number of packets per Receive and Transmit

  // Returns the same behind the IP header for that destination.
  size_t MaxDatagramTo(const wire::Gid& destination) const {
    return max_datagram - (IpUdpLength(destination) - kMinIpUdpLength);
  }
};

class PacketPort {
 public:
  virtual ~PacketPort() = default;

  virtual PortLimits limits() const = 0;

  // Returns a packet to fill, or nullptr if the pool is empty. Never blocks.
  virtual TxPacket* Acquire() = 0;
  virtual void Release(TxPacket* packet) = 0;

  // Seals and queues packets in order; returns how many it took. They leave at the latest with the
  // next Flush.
  virtual size_t Transmit(std::span<TxPacket* const> packets) = 0;
  // Sends queued packets. Returns true if none is left. Those that are left refer to no payload.
  virtual bool Flush() = 0;

  // Fills the front of `into` and returns the number of datagrams. Their bytes are valid until the
  // next call.
  virtual size_t Receive(std::span<wire::RxDatagram> into) = 0;

  // From now on drops and counts what this filter does not let pass, before Receive. An empty
  // filter ends that. Returns false if the port cannot: the caller has to look at each datagram.
  virtual bool Filter(const FloodFilter& filter) { return filter.empty(); }

  // Descriptor that becomes readable when Receive may return packets; -1: the port must be polled.
  virtual int wake_fd() const = 0;

  // Returns the counters of this queue; a decorator returns those of its inner port.
  virtual const PortCounters& counters() const {
    static const PortCounters kNothing;
    return kNothing;
  }
};

}  // namespace rocegw::port
