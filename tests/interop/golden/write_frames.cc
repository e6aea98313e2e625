// SPDX-License-Identifier: Apache-2.0
// write_frames FILE: a pcap file with frames of every opcode, IPv4 and IPv6, in several payload
// lengths. Field values follow rules that judge_frames.py knows; the number of frames goes to
// stdout.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "gateway/wire/byte_order.h"
#include "gateway/wire/codec.h"
#include "gateway/wire/crc/icrc.h"

namespace {

using namespace rocegw::wire;  // NOLINT(google-build-using-namespace): one file, one purpose
using rocegw::Psn;
using rocegw::Qpn;
using Bytes = std::vector<uint8_t>;

void Put16(Bytes& out, size_t value) {
  out.push_back(static_cast<uint8_t>(value >> 8));
  out.push_back(static_cast<uint8_t>(value));
}

uint16_t IpChecksum(const Bytes& frame, size_t at) {
  uint32_t sum = 0;
  for (size_t i = 0; i < 20; i += 2) sum += LoadBe16(frame.data() + at + i);
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

Bytes Frame(const Path& path, uint16_t ip_id, const Bytes& datagram) {
  Bytes f = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};
  const size_t udp_length = 8 + datagram.size();
  if (path.destination.IsV4()) {
    Put16(f, 0x0800);
    Put16(f, 0x4500 | path.traffic_class);
    Put16(f, 20 + udp_length);
    Put16(f, ip_id);
    Put16(f, 0x4000);
    Put16(f, static_cast<size_t>(path.hop_limit << 8 | 17));
    Put16(f, 0);
    f.insert(f.end(), path.source.bytes.begin() + 12, path.source.bytes.end());
    f.insert(f.end(), path.destination.bytes.begin() + 12, path.destination.bytes.end());
    StoreBe16(f.data() + 14 + 10, IpChecksum(f, 14));
  } else {
    Put16(f, 0x86DD);
    Put16(f, static_cast<size_t>(0x6000 | path.traffic_class << 4));
    Put16(f, 0);
    Put16(f, udp_length);
    Put16(f, static_cast<size_t>(17 << 8 | path.hop_limit));
    f.insert(f.end(), path.source.bytes.begin(), path.source.bytes.end());
    f.insert(f.end(), path.destination.bytes.begin(), path.destination.bytes.end());
  }
  Put16(f, path.source_port);
  Put16(f, kRocePort);
  Put16(f, udp_length);
  Put16(f, 0);
  f.insert(f.end(), datagram.begin(), datagram.end());
  return f;
}

Headers HeadersFor(uint8_t opcode) {
  Headers h;
  h.bth.opcode = static_cast<Opcode>(opcode);
  h.bth.migrated = h.bth.opcode != Opcode::kCnp;
  h.bth.becn = h.bth.opcode == Opcode::kCnp;
  h.bth.solicited =
      TraitsOf(opcode).ends_message() && TraitsOf(opcode).operation == Operation::kSend;
  h.bth.ack_request = TraitsOf(opcode).is_request && TraitsOf(opcode).ends_message();
  h.bth.dest_qpn = Qpn{0x123400u + opcode};
  h.bth.psn = Psn(0xABC000u + opcode);
  h.xrc_srq = 0x999900u + opcode;
  h.reth = {0x7F00112233440000u + opcode, 0x01020300u + opcode, 0x00010000u + opcode};
  h.atomic = {0x7F00112233440000u + opcode, 0x01020300u + opcode, 0x1111111111111100u + opcode,
              0x2222222222222200u + opcode};
  h.atomic_ack = 0x3333333333333300u + opcode;
  h.aeth = {kSyndromeAck, 0x444400u + opcode};
  h.deth = {0x55555500u + opcode, Qpn{0x666600u + opcode}};
  h.immediate = __builtin_bswap32(0x77777700u + opcode);
  h.invalidate_rkey = 0x08080800u + opcode;
  h.feth = 0x00000011;
  return h;
}

std::vector<size_t> PayloadLengths(const OpcodeTraits& traits) {
  if (!traits.has_payload) return {0};
  if (traits.operation == Operation::kAtomicWrite) return {8};
  if (!traits.ends_message()) return {256, 1024, 4096};
  if (!traits.starts_message()) return {1, 2, 3, 4, 61, 4096};
  return {0, 1, 2, 3, 4, 61, 1024, 4096};
}

class Pcap {
 public:
  explicit Pcap(std::FILE* file) : file_(file) {
    // Magic, version 2.4, zone, accuracy, snapshot length, link type Ethernet.
    for (const uint32_t word : {0xA1B2C3D4u, 0x00040002u, 0u, 0u, 65535u, 1u}) Put(word);
  }
  void Add(const Bytes& frame) {
    const auto length = static_cast<uint32_t>(frame.size());
    for (const uint32_t word : {0u, count_++, length, length}) Put(word);
    ok_ = std::fwrite(frame.data(), 1, frame.size(), file_) == frame.size() && ok_;
  }
  uint32_t count() const { return count_; }
  bool ok() const { return ok_; }

 private:
  void Put(uint32_t word) { ok_ = std::fwrite(&word, sizeof word, 1, file_) == 1 && ok_; }

  std::FILE* file_;
  uint32_t count_ = 0;
  bool ok_ = true;
};

Bytes Datagram(const Path& path, uint16_t ip_id, uint8_t opcode, size_t payload) {
  Headers headers = HeadersFor(opcode);
  headers.bth.pad_count = static_cast<uint8_t>((4 - payload % 4) % 4);
  Bytes bytes(kMaxHeaderLength);
  bytes.resize(EncodeHeaders(headers, bytes.data()));
  KnownCrc known{bytes.size(), payload, 0};
  for (size_t i = 0; i < payload; ++i) bytes.push_back(static_cast<uint8_t>(i * 5 + 0xE1));
  bytes.resize(bytes.size() + headers.bth.pad_count);
  const size_t length = bytes.size();
  bytes.resize(length + kIcrcLength);
  // Every other frame takes the way of a payload whose CRC was taken before.
  known.crc = CrcUpdate(0, std::span(bytes).subspan(known.offset, payload));
  SealIcrc(path, ip_id, bytes.data(), length, ip_id % 2 != 0 ? known : KnownCrc{});
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  std::FILE* file = argc == 2 ? std::fopen(argv[1], "wb") : nullptr;
  if (file == nullptr) {
    std::fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return 2;
  }
  Path v4;
  v4.source = Gid::FromV4(0xC0000201);
  v4.destination = Gid::FromV4(0xC0000202);
  v4.source_port = 0xC123;
  v4.traffic_class = 0x6A;
  Path v6 = v4;
  v6.source = v6.destination = Gid{};
  v6.source.bytes = {0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  v6.destination.bytes = {0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};

  Pcap pcap(file);
  uint16_t ip_id = 0xFFF0;  // wraps on the way
  for (int opcode = 0; opcode < 256; ++opcode) {
    const OpcodeTraits& traits = TraitsOf(static_cast<uint8_t>(opcode));
    // Channel packets: interop/channel_frames.
    if (!traits.defined() || traits.service == Service::kChannel) continue;
    for (const size_t payload : PayloadLengths(traits)) {
      for (const Path& path : {v4, v6}) {
        const Bytes datagram = Datagram(path, ip_id, static_cast<uint8_t>(opcode), payload);
        pcap.Add(Frame(path, ip_id++, datagram));
      }
    }
  }
  const bool ok = pcap.ok() && std::fclose(file) == 0;
  std::printf("%u\n", pcap.count());
  return ok ? 0 : 1;
}
