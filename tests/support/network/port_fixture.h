// SPDX-License-Identifier: Apache-2.0
// Small RoCEv2 packets for tests of ports and decorators: a BTH with a destination QPN and PSN, and
// a payload computed from the PSN, so that a receiver can check which packet it got.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/port/packet_port.h"
#include "gateway/wire/datagram.h"

namespace rocegw::testing {

inline constexpr size_t kTestHeader = 12;

// Writes a SEND Only packet; returns its length without ICRC.
size_t WriteTestPacket(Qpn destination, uint32_t psn, size_t payload, uint8_t* out);

// Returns true if the bytes, ICRC included, are those of WriteTestPacket for their PSN.
bool IsTestPacket(std::span<const uint8_t> datagram);
uint32_t PsnOf(std::span<const uint8_t> datagram);

// Acquires, fills, transmits and flushes one packet. Returns false if the port refused it.
bool SendTestPacket(port::PacketPort& port, const wire::Path& path, Qpn destination, uint32_t psn,
                    size_t payload);

struct Received {
  wire::RxMeta meta;
  std::vector<uint8_t> bytes;
};
// Returns copies of all datagrams that have been received.
std::vector<Received> ReceiveAll(port::PacketPort& port);

// Polls until `count` datagrams arrived, or none for a while (for ports over the kernel).
std::vector<Received> ReceiveCount(port::PacketPort& port, size_t count);

// Returns 10.9.0.`host` or fd09::`host`.
wire::Gid TestAddress(uint8_t host, bool ipv4 = true);
// Returns 127.0.0.1 or ::1.
wire::Gid Loopback(bool ipv4);
// Returns a free UDP port: tests in other processes run at the same time.
uint16_t FreeUdpPort();
wire::Path TestPath();

}  // namespace rocegw::testing
