// SPDX-License-Identifier: Apache-2.0
// Where packets leave and arrive: one queue of a network port. A worker owns its queue; nobody else
// calls it. Packets at this interface are UDP payloads (BTH first) with a path; the IP and UDP
// headers are the port's business, and since the ICRC covers the IPv4 ID, sealing it
// (wire/crc/icrc.h) is the port's last step before a packet leaves.
//
// Ownership of a TxPacket: Acquire -> caller; Transmit takes the first n and owns them from then
// on; the rest stay the caller's, to be offered again or given back with Release. Nothing is lost
// silently: push-back shows as n < size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gateway/base/ids.h"
#include "gateway/port/frame.h"
#include "gateway/port/port_counters.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/datagram.h"

namespace rocegw::port {

struct TxPacket {
  uint8_t* data = nullptr;   // room for PortLimits::max_datagram bytes, ICRC included
  uint32_t length = 0;       // BTH .. pad, without the ICRC
  wire::KnownCrc known_crc;  // set when the payload's CRC was taken while copying
  wire::Path path;
  Qpn source_qpn;          // whose it is, which RC does not tell the network; for captures
  void* cookie = nullptr;  // the port's own
};

struct PortLimits {
  // Bytes of UDP payload with ICRC that fit the interface's MTU behind an IPv4 header.
  size_t max_datagram = 0;
  size_t burst = 0;  // what Receive and Transmit handle well at once

  // The same behind the header of the IP that goes there.
  size_t MaxDatagramTo(const wire::Gid& destination) const {
    return max_datagram - (IpUdpLength(destination) - kMinIpUdpLength);
  }
};

class PacketPort {
 public:
  virtual ~PacketPort() = default;

  virtual PortLimits limits() const = 0;

  // A packet to fill, or nullptr when the pool is dry. Never blocks.
  virtual TxPacket* Acquire() = 0;
  virtual void Release(TxPacket* packet) = 0;

  // Seals and queues packets in order; returns how many it took. What was taken leaves with the
  // next Flush at the latest.
  virtual size_t Transmit(std::span<TxPacket* const> packets) = 0;
  // Hands queued packets to the network. True when none is left waiting.
  virtual bool Flush() = 0;

  // Fills the front of `into`; returns how many. Their bytes are valid until the next call.
  virtual size_t Receive(std::span<wire::RxDatagram> into) = 0;

  // Becomes readable when Receive may yield something; -1: the port must be polled.
  virtual int wake_fd() const = 0;

  // What this queue counted about itself; a decorator answers with its inner port's.
  virtual const PortCounters& counters() const {
    static const PortCounters kNothing;
    return kNothing;
  }
};

}  // namespace rocegw::port
