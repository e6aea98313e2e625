// SPDX-License-Identifier: Apache-2.0
// Packet in the simulated network: the datagram that a port filled, and the fields of its IP and
// UDP headers as values. It moves by pointer from the sender's port to the receiver and back to the
// one pool of its Network; only duplicates are copied. The pool grows to the number in flight and
// never shrinks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gateway/port/packet_port.h"
#include "gateway/wire/datagram.h"

namespace rocegw::sim {

// Bytes on a link beyond the datagram: preamble and gap 20, Ethernet header and checksum 18; IPv4
// and UDP add 28. IPv6 is counted like IPv4.
inline constexpr uint32_t kEthernetOverhead = 38;

// ECN codepoints, the low two bits of the traffic class (RFC 3168).
inline constexpr uint8_t kEcnMask = 3;
inline constexpr uint8_t kEctZero = 2;
inline constexpr uint8_t kCongestionExperienced = 3;

struct Packet : port::TxPacket {
  wire::RxMeta meta;
  uint32_t size = 0;   // size of the datagram with its ICRC; set by the sender's port
  uint32_t owner = 0;  // for ports: identifies the owner
  bool damaged = false;
  uint64_t number = 0;  // in order of entry to the network; copies have the same

  std::span<const uint8_t> bytes() const { return {data, size}; }
  uint8_t opcode() const { return data[0]; }
  uint32_t psn() const {
    return static_cast<uint32_t>(data[9]) << 16 | static_cast<uint32_t>(data[10]) << 8 | data[11];
  }
  uint32_t destination_qpn() const {
    return static_cast<uint32_t>(data[5]) << 16 | static_cast<uint32_t>(data[6]) << 8 | data[7];
  }
  uint32_t wire_bytes() const {
    return size + kEthernetOverhead + (meta.destination.IsV4() ? 28 : 48);
  }
};

// Returns the address with the host's number in its last three bytes.
inline wire::Gid AddressOf(uint32_t host, bool v6 = false) {
  wire::Gid gid = wire::Gid::FromV4(0x0A000000u + host);
  if (v6) {
    gid = {};
    gid.bytes[0] = 0xFD;
    gid.bytes[13] = static_cast<uint8_t>(host >> 16);
    gid.bytes[14] = static_cast<uint8_t>(host >> 8);
    gid.bytes[15] = static_cast<uint8_t>(host);
  }
  return gid;
}
inline uint32_t HostOf(const wire::Gid& gid) {
  return static_cast<uint32_t>(gid.bytes[13]) << 16 | static_cast<uint32_t>(gid.bytes[14]) << 8 |
         gid.bytes[15];
}

class PacketStore {
 public:
  explicit PacketStore(size_t datagram_bytes) : stride_((datagram_bytes + 127) / 64 * 64) {}

  Packet* Get();
  void Put(Packet* packet) { free_.push_back(packet); }
  Packet* Copy(const Packet& packet);

  size_t made() const { return blocks_.size() * kPerBlock; }
  size_t in_use() const { return made() - free_.size(); }
  size_t bytes() const { return made() * (stride_ + sizeof(Packet)); }

 private:
  static constexpr size_t kPerBlock = 64;
  struct Block {
    std::unique_ptr<uint8_t[]> bytes;
    std::unique_ptr<Packet[]> packets;
  };

  const size_t stride_;
  std::vector<Block> blocks_;
  std::vector<Packet*> free_;
};

}  // namespace rocegw::sim
