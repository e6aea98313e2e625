// SPDX-License-Identifier: Apache-2.0
// write_channel_frames FILE: a pcap file with channel packets of every kind, over IPv4, in an order
// and with values that judge_channel_frames.py knows; the last ones are damaged on purpose. The
// number of sound and of damaged packets goes to stdout.
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "gateway/wire/byte_order.h"
#include "gateway/wire/channel_bundle.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/codec.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/seal/sealed_datagram.h"

namespace {

using namespace rocegw::wire;  // NOLINT(google-build-using-namespace): one file, one purpose
using rocegw::Psn;
using rocegw::Qpn;
using Bytes = std::vector<uint8_t>;

class Pcap {
 public:
  explicit Pcap(std::FILE* file) : file_(file) {
    // Magic, version 2.4, zone, accuracy, snapshot length, link type "raw IP".
    for (const uint32_t word : {0xA1B2C3D4u, 0x00040002u, 0u, 0u, 65535u, 101u}) Put(word);
  }
  void Add(Opcode opcode, const Bytes& body) {
    const Bytes packet = Packet(opcode, body);
    const auto length = static_cast<uint32_t>(packet.size());
    for (const uint32_t word : {0u, count_++, length, length}) Put(word);
    ok_ = std::fwrite(packet.data(), 1, packet.size(), file_) == packet.size() && ok_;
  }
  uint32_t count() const { return count_; }
  bool ok() const { return ok_; }

 private:
  void Put(uint32_t word) { ok_ = std::fwrite(&word, sizeof word, 1, file_) == 1 && ok_; }

  Bytes Packet(Opcode opcode, const Bytes& body) const {
    Headers headers;
    headers.bth.opcode = opcode;
    headers.bth.dest_qpn = Qpn{0x123400 + count_};
    headers.bth.psn = Psn(0xABC000 + count_);
    headers.bth.pad_count = static_cast<uint8_t>(-body.size() & 3);
    constexpr size_t kOuter = 28;
    Bytes bytes(kOuter + kBthLength);
    EncodeHeaders(headers, bytes.data() + kOuter);
    bytes.insert(bytes.end(), body.begin(), body.end());
    bytes.resize(bytes.size() + headers.bth.pad_count + kIcrcLength);
    Path path;
    path.source = Gid::FromV4(0xC0000201);
    path.destination = Gid::FromV4(0xC0000202);
    path.source_port = 0xC123;
    SealIcrc(path, 7, bytes.data() + kOuter, bytes.size() - kOuter - kIcrcLength);
    bytes[0] = 0x45;
    StoreBe16(bytes.data() + 2, static_cast<uint16_t>(bytes.size()));
    StoreBe16(bytes.data() + 4, 7);
    StoreBe16(bytes.data() + 6, 0x4000);
    bytes[8] = 64;
    bytes[9] = 17;
    StoreBe32(bytes.data() + 12, 0xC0000201);
    StoreBe32(bytes.data() + 16, 0xC0000202);
    StoreBe16(bytes.data() + 20, path.source_port);
    StoreBe16(bytes.data() + 22, kRocePort);
    StoreBe16(bytes.data() + 24, static_cast<uint16_t>(bytes.size() - 20));
    return bytes;
  }

  std::FILE* file_;
  uint32_t count_ = 0;
  bool ok_ = true;
};

Bytes Body(const ChannelFrame& frame, size_t payload) {
  Bytes bytes(kMaxFrameLength);
  bytes.resize(EncodeFrame(frame, bytes.data()));
  for (size_t i = 0; i < payload; ++i) bytes.push_back(static_cast<uint8_t>(i * 5 + 0xE1));
  return bytes;
}

ChannelFrame FrameOf(FrameKind kind, uint8_t flags, uint32_t payload) {
  ChannelFrame f;
  f.kind = kind;
  f.flags = flags;
  f.epoch = 0xE1E2;
  if (kind == FrameKind::kVoid) return f;
  f.tenant = 0x01020304;
  f.destination = Qpn{0x0A0B0C};
  f.source = Qpn{0x1A1B1C};
  f.message = 0x21222324;
  f.address = 0x4142434445464748;
  f.rkey = 0x51525354;
  f.immediate = __builtin_bswap32(f.has(kFrameImmediate) ? 0x77777701u : 0);
  f.invalidate_rkey = 0x08080801;
  f.swap_or_add = 0x6162636465666768;
  f.original = 0x8182838485868788;
  if (kind == FrameKind::kFetchOperate) f.operation = AtomicOperation::kXor;
  if (kind == FrameKind::kCompareSwap) f.compare = 0x7172737475767778;
  if (kind == FrameKind::kReply) f.syndrome = 0x62;
  if (kind == FrameKind::kSend || f.has(kFrameImmediate) || f.has(kFrameEndpoint))
    f.receive = 0x31323334;
  if (kind == FrameKind::kReadRequest || kind == FrameKind::kFlush) f.length = 0x00100000;
  if (kind == FrameKind::kFlush) f.feth = 0x11;
  if (kind == FrameKind::kAtomicWrite) f.length = 8;
  if (kind == FrameKind::kSend || kind == FrameKind::kWrite || kind == FrameKind::kReadResponse) {
    f.offset = f.has(kFrameLast) && payload != 0 ? 4000 : 0;
    f.length = f.has(kFrameLast) ? f.offset + payload : 9000;
  }
  return f;
}

void AddFrames(Pcap& pcap) {
  struct Kind {
    FrameKind kind;
    uint8_t flags;
    uint32_t payload;
  };
  using enum FrameKind;
  const Kind kinds[] = {
      {kVoid, 0x10, 0},         {kSend, 0x04, 100},       {kSend, 0x00, 4096},
      {kSend, 0x07, 61},        {kSend, 0x7C, 3},         {kSend, 0x04, 0},
      {kWrite, 0x24, 100},      {kWrite, 0x00, 4096},     {kWrite, 0x0F, 2},
      {kReadRequest, 0x04, 0},  {kReadResponse, 0x04, 1}, {kReadResponse, 0x00, 1024},
      {kCompareSwap, 0x0C, 0},  {kFetchAdd, 0x04, 0},     {kAtomicResult, 0x14, 0},
      {kReply, 0x10, 0},        {kFlush, 0x0C, 0},        {kAtomicWrite, 0x04, 8},
      {kReadRequest, 0xA4, 0},  {kCompareSwap, 0xA4, 0},  {kFetchAdd, 0xA4, 0},
      {kFetchOperate, 0x04, 0},
  };
  for (const Kind& kind : kinds) {
    const ChannelFrame frame = FrameOf(kind.kind, kind.flags, kind.payload);
    pcap.Add(Opcode::kChannelFrame, Body(frame, kind.payload));
  }
}

Bytes AckBody(uint16_t words) {
  ChannelAck ack;
  ack.epoch = 0xE1E2;
  ack.marked_bytes = 0x01020304;
  ack.hint = 0x11;
  ack.room = 0x212223;
  ack.held_ns = 0x31323334;
  ack.probe = 0x41424344;
  ack.words = words;
  ack.duplicates = 0x51;
  for (uint16_t i = 0; i < words; ++i) ack.bitmap[i] = 0x80000001;
  Bytes bytes(kChannelAckLength + size_t{words} * 4);
  EncodeAck(ack, bytes.data());
  return bytes;
}

Bytes ControlBody(ControlKind kind, bool tagged = false, bool seals = false) {
  ChannelControl c;
  c.kind = kind;
  if (kind != ControlKind::kRefused && kind != ControlKind::kRetry) c.channel = 0x0A0B0C;
  if (kind == ControlKind::kRefused || kind == ControlKind::kReset || kind == ControlKind::kClose) {
    c.reason = ChannelReason::kUnknownChannel;
  }
  c.epoch = 0x11121314;
  if (kind != ControlKind::kOpen) c.peer_epoch = 0x21222324;
  if (kind == ControlKind::kOpen || kind == ControlKind::kOpened) {
    c.initial_psn = Psn(0x313233);
    c.traffic_class = 0x6A;
    c.window = 4096;
    c.path = 3;
    c.features = 0x41424344;
    c.cc_kind = 2;
    c.checksum_mode = 1;
  }
  if (kind == ControlKind::kProbe) c.probe = 0x51525354;
  c.instance = 0x61626364;
  if (tagged) {
    c.tagged = true;
    c.sequence = 0x7172737475767778;
    c.tag = 0x8182838485868788;
  }
  if (seals) {
    c.seals = true;
    for (size_t i = 0; i < kSaltLength; ++i) c.seal.salt[i] = static_cast<uint8_t>(0x91 + i);
    c.seal.encrypts = true;
  }
  Bytes bytes(kMaxControlLength);
  bytes.resize(EncodeControl(c, bytes.data()));
  return bytes;
}

// Returns the content of a bundle of frames and acknowledgements, with PSNs from 0xFFFFFF on.
Bytes BundleContent(const std::vector<std::pair<Opcode, Bytes>>& entries) {
  Bytes bundle(kBthLength);
  Psn psn(0xFFFFFF);
  for (const auto& [opcode, body] : entries) {
    Headers headers;
    headers.bth.opcode = opcode;
    headers.bth.psn = psn;
    psn = psn + 1;
    headers.bth.pad_count = static_cast<uint8_t>(-body.size() & 3);
    Bytes alone(kBthLength);
    EncodeHeaders(headers, alone.data());
    alone.insert(alone.end(), body.begin(), body.end());
    alone.resize(alone.size() + headers.bth.pad_count);
    const size_t length = bundle.size();
    bundle.resize(length + EntryLength(alone));
    AppendToBundle(bundle.data(), length, alone);
  }
  return {bundle.begin() + kBthLength, bundle.end()};
}

void AddBundles(Pcap& pcap) {
  const Bytes send = Body(FrameOf(FrameKind::kSend, 0x07, 61), 61);
  const Bytes reply = Body(FrameOf(FrameKind::kReply, 0x10, 0), 0);
  pcap.Add(Opcode::kChannelBundle, BundleContent({{Opcode::kChannelFrame, send},
                                                  {Opcode::kChannelFrame, reply},
                                                  {Opcode::kChannelAck, AckBody(1)}}));
}

// Returns what stands behind the BTH of a sealed datagram; the tag is no tag of any key.
Bytes SealedBody(Opcode inner, const Bytes& content, bool encrypted) {
  Bytes datagram(kBthLength);
  Headers headers;
  headers.bth.opcode = inner;
  headers.bth.pad_count = static_cast<uint8_t>(-content.size() & 3);
  EncodeHeaders(headers, datagram.data());
  datagram.insert(datagram.end(), content.begin(), content.end());
  datagram.resize(datagram.size() + headers.bth.pad_count);
  const size_t length = datagram.size();
  datagram.resize(length + kSealLength, 0xA5);
  BeginSeal({},
            {.encrypted = encrypted,
             .epoch = 0xE1E2,
             .channel = Qpn{0x0A0B0C},
             .key_id = 0x11121314,
             .sequence = 0x2122232425262728},
            datagram.data(), length);
  return {datagram.begin() + kBthLength, datagram.end()};
}

void AddSealed(Pcap& pcap) {
  const Bytes send = Body(FrameOf(FrameKind::kSend, 0x07, 61), 61);
  const Bytes reply = Body(FrameOf(FrameKind::kReply, 0x10, 0), 0);
  pcap.Add(Opcode::kChannelSealed, SealedBody(Opcode::kChannelFrame, send, false));
  pcap.Add(Opcode::kChannelSealed, SealedBody(Opcode::kChannelBundle,
                                              BundleContent({{Opcode::kChannelFrame, send},
                                                             {Opcode::kChannelFrame, reply},
                                                             {Opcode::kChannelAck, AckBody(1)}}),
                                              false));
  pcap.Add(Opcode::kChannelSealed, SealedBody(Opcode::kChannelAck, AckBody(0), true));
}

// What the dissector must call malformed, and survive.
void AddDamaged(Pcap& pcap) {
  const Bytes send = Body(FrameOf(FrameKind::kSend, 0x07, 0), 0);
  pcap.Add(Opcode::kChannelFrame, {});
  pcap.Add(Opcode::kChannelFrame, Bytes(send.begin(), send.begin() + 31));
  pcap.Add(Opcode::kChannelFrame, Bytes(send.begin(), send.begin() + 35));
  Bytes version = send;
  version[0] = 0x21;
  pcap.Add(Opcode::kChannelFrame, version);
  Bytes kind = send;
  kind[0] = 0x1F;
  pcap.Add(Opcode::kChannelFrame, kind);
  Bytes ack = AckBody(2);
  ack.pop_back();
  pcap.Add(Opcode::kChannelAck, ack);
  pcap.Add(Opcode::kChannelAck, Bytes(ack.begin(), ack.begin() + 20));
  ack = AckBody(0);
  ack[20] = 0xFF;
  pcap.Add(Opcode::kChannelAck, ack);
  Bytes control = ControlBody(ControlKind::kOpen);
  control[0] = 0x18;
  pcap.Add(Opcode::kChannelControl, control);
  control.push_back(0);
  pcap.Add(Opcode::kChannelControl, control);
  const Bytes pair = BundleContent({{Opcode::kChannelFrame, send}, {Opcode::kChannelFrame, send}});
  pcap.Add(Opcode::kChannelBundle, BundleContent({{Opcode::kChannelFrame, send}}));
  pcap.Add(Opcode::kChannelBundle, Bytes(pair.begin(), pair.end() - 8));
  pcap.Add(Opcode::kChannelBundle,
           BundleContent({{Opcode::kChannelFrame, send}, {Opcode::kChannelFrame, version}}));
  Bytes of_control = pair;
  of_control[0] = 0xC2;
  pcap.Add(Opcode::kChannelBundle, of_control);
  Bytes cut_tag = ControlBody(ControlKind::kOpen, true);
  cut_tag.resize(52);
  pcap.Add(Opcode::kChannelControl, cut_tag);
  const Bytes sealed = SealedBody(Opcode::kChannelFrame, send, false);
  pcap.Add(Opcode::kChannelSealed, Bytes(sealed.end() - kSealLength, sealed.end()));
  Bytes of_probe = sealed;
  of_probe[sealed.size() - kSealLength] = 0xC2;
  pcap.Add(Opcode::kChannelSealed, of_probe);
}

}  // namespace

int main(int argc, char** argv) {
  std::FILE* file = argc == 2 ? std::fopen(argv[1], "wb") : nullptr;
  if (file == nullptr) {
    std::fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return 2;
  }
  Pcap pcap(file);
  AddFrames(pcap);
  for (const uint16_t words : {0, 1, 128}) pcap.Add(Opcode::kChannelAck, AckBody(words));
  for (int kind = 0; kind < static_cast<int>(ControlKind::kCount); ++kind) {
    pcap.Add(Opcode::kChannelControl, ControlBody(static_cast<ControlKind>(kind)));
  }
  pcap.Add(Opcode::kChannelControl, ControlBody(ControlKind::kOpened, true));
  pcap.Add(Opcode::kChannelControl, ControlBody(ControlKind::kOpen, true, true));
  AddBundles(pcap);
  AddSealed(pcap);
  // A native packet, which stays Wireshark's.
  pcap.Add(Opcode::kRcSendOnly, {1, 2, 3, 4});
  const uint32_t sound = pcap.count();
  AddDamaged(pcap);
  const bool ok = pcap.ok() && std::fclose(file) == 0;
  std::printf("%u %u\n", sound, pcap.count() - sound);
  return ok ? 0 : 1;
}
