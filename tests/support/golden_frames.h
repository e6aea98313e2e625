// SPDX-License-Identifier: Apache-2.0
// Recorded Ethernet frames as golden inputs, checked with CRC code that is not ours (scapy, zlib);
// the first two are from captures of hardware. ParseFrame is a small independent reader of the
// headers in front of the BTH.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gateway/wire/datagram.h"

namespace rocegw::wire::testing {

struct GoldenFrame {
  const char* name;
  std::string_view hex;
};

// CNP of a ConnectX-4 Lx, captured on a wire: UDP source port and checksum 0, DSCP 48, ECT(0).
inline constexpr GoldenFrame kHardwareCnpFrame{
    "HardwareCnp",
    "e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201000012b7002800008100ff"
    "ff40000118000000000000000000000000000000000000000082fd002a"};
// UC SEND Only, pad 2, UDP checksum not 0 (from the same capture collection).
inline constexpr GoldenFrame kUcSendOnlyFrame{
    "UcSendOnly",
    "248a07a8fa22248a07a8fa22080045010040047840004011b4d5c0a80007c0a80007c00012b7002caca22460ff"
    "ff000000d300cf17104630818be28935d90e9a95505401be885e50000078f353f3"};
// RC SEND Only, 13 bytes "RoCEv2 vector" and 3 of pad.
inline constexpr GoldenFrame kRcSendOnlyFrame{
    "RcSendOnly",
    "0200000000020200000000010800456a003c123440004011a40fc0000201c0000202c12312b7002800000470ff"
    "ff0000001180abcdef526f4345763220766563746f72000000875769be"};
// CNP to QP 0x12.
inline constexpr GoldenFrame kCnpFrame{
    "Cnp",
    "020000000001020000000002080045c2003c000140004011b5eac0000202c0000201c12312b7002800008100ff"
    "ff40000012000000000000000000000000000000000000000051d0023c"};
// IPv6, RC WRITE Only, 8 bytes "RoCEv2!!", flow label 0x12345, UDP checksum 0xBEB5.
inline constexpr GoldenFrame kIpv6WriteOnlyFrame{
    "Ipv6WriteOnly",
    "02000000000202000000000186dd66a123450030114020010db800000000000000000000000120010db8000000"
    "000000000000000002e34112b70030beb50a40ffff000000118000000100007f00112233440001234500000008"
    "526f43457632212125862bd5"};
// RC ACK, syndrome 0x1F, MSN 1.
inline constexpr GoldenFrame kRcAckFrame{
    "RcAck",
    "0200000000010200000000020800456a0030000240004011b64dc0000202c0000201c12312b7001c00001140ff"
    "ff0000001200abcdef1f000001f0a815e9"};
// CM REQ, UD SEND Only to QP 1.
inline constexpr GoldenFrame kCmRequestFrame{
    "CmRequest",
    "020000000002020000000001080045000134000340004011b5b2c0000201c0000202c00112b7012000006440ff"
    "ff000000010000000080010000000000010107020300000000aabbccdd11111111001000000000000111111111"
    "000015b30000000001061d2f020000000000000100000000000000000000121000000010000000a0abcdefa7ff"
    "ff37f0ffffffff00000000000000000000ffffc000020100000000000000000000ffffc0000202123450000040"
    "009000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000040c350000000000000000000000000c0000201000000000000000000000000c00002020000000000000000"
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000a5e6a8aa"};
// CM REP.
inline constexpr GoldenFrame kCmReplyFrame{
    "CmReply",
    "020000000001020000000002080045000134000440004011b5b1c0000202c0000201c00112b7012000006440ff"
    "ff000000010000000080010000000000010107020300000000aabbccdd11111111001300000000000122222222"
    "11111111000000000000110000000015000001b3101080e0020000000000000200000000000000000000000000"
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000008a335dd2"};

inline constexpr std::array kGoldenFrames = {
    kHardwareCnpFrame,   kUcSendOnlyFrame, kRcSendOnlyFrame, kCnpFrame,
    kIpv6WriteOnlyFrame, kRcAckFrame,      kCmRequestFrame,  kCmReplyFrame};

inline std::vector<uint8_t> FromHex(std::string_view hex) {
  std::vector<uint8_t> bytes;
  const auto digit = [](char c) { return static_cast<uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(digit(hex[i]) << 4 | digit(hex[i + 1])));
  }
  return bytes;
}

// What a port hands up for a frame.
struct ParsedFrame {
  RxMeta meta;
  std::vector<uint8_t> datagram;

  RxDatagram Rx() const { return {meta, datagram}; }
};

inline ParsedFrame ParseFrame(const std::vector<uint8_t>& f) {
  constexpr size_t kIp = 14;
  ParsedFrame out;
  size_t udp = kIp + 20;
  if (f[kIp] == 0x45) {
    const auto address = [&f](size_t at) {
      return uint32_t{f[at]} << 24 | uint32_t{f[at + 1]} << 16 | uint32_t{f[at + 2]} << 8 |
             f[at + 3];
    };
    out.meta.source = Gid::FromV4(address(kIp + 12));
    out.meta.destination = Gid::FromV4(address(kIp + 16));
    out.meta.traffic_class = f[kIp + 1];
    out.meta.hop_limit = f[kIp + 8];
    out.meta.ip_id_known = true;
    out.meta.ip_id = static_cast<uint16_t>(f[kIp + 4] << 8 | f[kIp + 5]);
  } else {
    udp = kIp + 40;
    for (size_t i = 0; i < 16; ++i) {
      out.meta.source.bytes[i] = f[kIp + 8 + i];
      out.meta.destination.bytes[i] = f[kIp + 24 + i];
    }
    out.meta.traffic_class = static_cast<uint8_t>(f[kIp] << 4 | f[kIp + 1] >> 4);
    out.meta.hop_limit = f[kIp + 7];
  }
  out.meta.source_port = static_cast<uint16_t>(f[udp] << 8 | f[udp + 1]);
  const size_t udp_length = static_cast<size_t>(f[udp + 4] << 8 | f[udp + 5]);
  out.datagram.assign(f.begin() + static_cast<ptrdiff_t>(udp + 8),
                      f.begin() + static_cast<ptrdiff_t>(udp + udp_length));
  return out;
}

inline ParsedFrame Parse(const GoldenFrame& frame) { return ParseFrame(FromHex(frame.hex)); }

}  // namespace rocegw::wire::testing
