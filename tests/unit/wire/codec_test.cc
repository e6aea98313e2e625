// SPDX-License-Identifier: Apache-2.0
// Every opcode through encode and decode, and every reason for a decode failure.
#include "gateway/wire/codec.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "gateway/wire/crc/icrc.h"
#include "tests/support/golden_frames.h"

namespace rocegw::wire {
namespace {

using metrics::DropReason;
using metrics::DropReasonName;

// Builder of a datagram: headers, payload, pad and ICRC between two fixed addresses.
struct Builder {
  Headers headers;
  std::vector<uint8_t> payload;
  uint16_t ip_id = 0x1234;
  bool v6 = false;

  Path path() const {
    Path path;
    path.source = v6 ? Gid{{0x20, 1, 0xD, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}
                     : Gid::FromV4(0xC0000201);
    path.destination = v6 ? Gid{{0x20, 1, 0xD, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}}
                          : Gid::FromV4(0xC0000202);
    path.source_port = 0xC123;
    return path;
  }
  RxMeta meta() const {
    RxMeta meta;
    meta.source = path().source;
    meta.destination = path().destination;
    meta.source_port = path().source_port;
    meta.ip_id_known = !v6;
    meta.ip_id = v6 ? 0 : ip_id;
    return meta;
  }
  // `seal` false leaves the ICRC wrong.
  std::vector<uint8_t> Build(bool seal = true) {
    headers.bth.pad_count = static_cast<uint8_t>((4 - payload.size() % 4) % 4);
    std::vector<uint8_t> bytes(kMaxHeaderLength);
    bytes.resize(EncodeHeaders(headers, bytes.data()));
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    bytes.insert(bytes.end(), headers.bth.pad_count, 0);
    const size_t length = bytes.size();
    bytes.insert(bytes.end(), kIcrcLength, 0);
    if (seal) Seal(bytes, length);
    return bytes;
  }
  void Seal(std::vector<uint8_t>& bytes, size_t length) const {
    SealIcrc(path(), ip_id, bytes.data(), length);
  }
  // Returns the decode result for the bytes with a valid ICRC.
  DropReason ReasonOf(std::vector<uint8_t> bytes) const {
    if (bytes.size() >= kBthLength + kIcrcLength) Seal(bytes, bytes.size() - kIcrcLength);
    RxPacket packet;
    return Decode({meta(), bytes}, packet);
  }
};

Builder Packet(Opcode opcode, size_t payload) {
  Builder b;
  b.headers.bth.opcode = opcode;
  for (size_t i = 0; i < payload; ++i) b.payload.push_back(static_cast<uint8_t>(i * 7 + 1));
  return b;
}

Headers FullHeaders(Opcode opcode) {
  Headers h;
  h.bth.opcode = opcode;
  h.bth.solicited = true;
  h.bth.migrated = false;
  h.bth.pkey = 0x7FFF;
  h.bth.fecn = true;
  h.bth.becn = true;
  h.bth.dest_qpn = Qpn{0xABCDEF};
  h.bth.ack_request = true;
  h.bth.psn = Psn(0xFEDCBA);
  h.xrc_srq = 0xFACADE;
  h.reth = {0x1122334455667788, 0x99AABBCC, 0x80000000};
  h.atomic = {0x0102030405060708, 0x11121314, 0x2122232425262728, 0x3132333435363738};
  h.atomic_ack = 0x4142434445464748;
  h.aeth = {0x61, 0x515253};
  h.deth = {0x80010000, Qpn{0x616263}};
  h.immediate = 0x71727374;
  h.invalidate_rkey = 0x81828384;
  h.feth = 0x00000021;
  return h;
}

std::vector<uint8_t> DefinedOpcodes() {
  std::vector<uint8_t> opcodes;
  for (int n = 0; n < 256; ++n) {
    if (TraitsOf(static_cast<uint8_t>(n)).defined()) opcodes.push_back(static_cast<uint8_t>(n));
  }
  return opcodes;
}

size_t SomePayload(const OpcodeTraits& traits) {
  if (!traits.has_payload) return 0;
  if (traits.operation == Operation::kAtomicWrite) return 8;
  return traits.position == Position::kFirst || traits.position == Position::kMiddle ? 256 : 5;
}

TEST(Codec, EveryOpcode_SurvivesARoundTrip) {
  for (const uint8_t number : DefinedOpcodes()) {
    for (const bool v6 : {false, true}) {
      const auto opcode = static_cast<Opcode>(number);
      const OpcodeTraits& traits = TraitsOf(opcode);
      Builder b = Packet(opcode, SomePayload(traits));
      b.headers = FullHeaders(opcode);
      b.v6 = v6;
      const std::vector<uint8_t> bytes = b.Build();
      RxPacket packet;
      ASSERT_EQ(DropReasonName(Decode({b.meta(), bytes}, packet)),
                DropReasonName(DropReason::kNone))
          << traits.name;
      const Headers& in = b.headers;
      const Headers& out = packet.headers;
      EXPECT_EQ(packet.traits, &traits);
      EXPECT_EQ(out.bth.opcode, opcode);
      EXPECT_EQ(out.bth.solicited, in.bth.solicited);
      EXPECT_EQ(out.bth.migrated, in.bth.migrated);
      EXPECT_EQ(out.bth.pad_count, in.bth.pad_count);
      EXPECT_EQ(out.bth.pkey, in.bth.pkey);
      EXPECT_EQ(out.bth.fecn, in.bth.fecn);
      EXPECT_EQ(out.bth.becn, in.bth.becn);
      EXPECT_EQ(out.bth.dest_qpn, in.bth.dest_qpn);
      EXPECT_EQ(out.bth.ack_request, in.bth.ack_request);
      EXPECT_EQ(out.bth.psn, in.bth.psn);
      EXPECT_EQ(out.xrc_srq, traits.has_xrceth ? in.xrc_srq : 0);
      EXPECT_EQ(out.reth.address, traits.has_reth ? in.reth.address : 0);
      EXPECT_EQ(out.reth.rkey, traits.has_reth ? in.reth.rkey : 0);
      EXPECT_EQ(out.reth.length, traits.has_reth ? in.reth.length : 0);
      EXPECT_EQ(out.atomic.address, traits.has_atomic_eth ? in.atomic.address : 0);
      EXPECT_EQ(out.atomic.rkey, traits.has_atomic_eth ? in.atomic.rkey : 0);
      EXPECT_EQ(out.atomic.swap_or_add, traits.has_atomic_eth ? in.atomic.swap_or_add : 0);
      EXPECT_EQ(out.atomic.compare, traits.has_atomic_eth ? in.atomic.compare : 0);
      EXPECT_EQ(out.atomic_ack, traits.has_atomic_ack_eth ? in.atomic_ack : 0);
      EXPECT_EQ(out.aeth.syndrome, traits.has_aeth ? in.aeth.syndrome : kSyndromeAck);
      EXPECT_EQ(out.aeth.msn, traits.has_aeth ? in.aeth.msn : 0);
      EXPECT_EQ(out.deth.qkey, traits.has_deth ? in.deth.qkey : 0);
      EXPECT_EQ(out.deth.source_qpn.value, traits.has_deth ? in.deth.source_qpn.value : 0);
      EXPECT_EQ(out.immediate, traits.has_immediate ? in.immediate : 0);
      EXPECT_EQ(out.invalidate_rkey, traits.has_invalidate ? in.invalidate_rkey : 0);
      EXPECT_EQ(out.feth, traits.has_feth ? in.feth : 0);
      EXPECT_EQ(std::vector<uint8_t>(packet.payload.begin(), packet.payload.end()), b.payload);
      EXPECT_EQ(packet.meta.source, b.meta().source);
      EXPECT_EQ(packet.meta.ip_id, b.meta().ip_id);
    }
  }
}

TEST(EncodeHeaders, BytesOfEachField_AreWhereTheSpecificationHasThem) {
  uint8_t bytes[kMaxHeaderLength];
  const auto encoded = [&bytes](Opcode opcode) {
    std::memset(bytes, 0xEE, sizeof bytes);
    const size_t length = EncodeHeaders(FullHeaders(opcode), bytes);
    return std::vector<uint8_t>(bytes, bytes + length);
  };
  const auto with_bth = [](std::initializer_list<uint8_t> opcode, std::string_view extended) {
    std::vector<uint8_t> all = opcode;
    for (const uint8_t byte : testing::FromHex("807fffc0abcdef80fedcba")) all.push_back(byte);
    for (const uint8_t byte : testing::FromHex(extended)) all.push_back(byte);
    return all;
  };
  EXPECT_EQ(encoded(Opcode::kRcSendMiddle), with_bth({0x01}, ""));
  EXPECT_EQ(encoded(Opcode::kRcWriteOnlyImm),
            with_bth({0x0B}, "112233445566778899aabbcc8000000074737271"));
  EXPECT_EQ(encoded(Opcode::kRcAck), with_bth({0x11}, "61515253"));
  EXPECT_EQ(encoded(Opcode::kRcAtomicAck), with_bth({0x12}, "615152534142434445464748"));
  EXPECT_EQ(encoded(Opcode::kRcCompareSwap),
            with_bth({0x13}, "01020304050607081112131421222324252627283132333435363738"));
  EXPECT_EQ(encoded(Opcode::kRcSendOnlyInvalidate), with_bth({0x17}, "81828384"));
  EXPECT_EQ(encoded(Opcode::kRcFlush),
            with_bth({0x1C}, "00000021112233445566778899aabbcc80000000"));
  EXPECT_EQ(encoded(Opcode::kUdSendOnlyImm), with_bth({0x65}, "800100000061626374737271"));
  EXPECT_EQ(encoded(Opcode::kXrcSendMiddle), with_bth({0xA1}, "00facade"));
  EXPECT_EQ(encoded(Opcode::kXrcWriteOnlyImm),
            with_bth({0xAB}, "00facade112233445566778899aabbcc8000000074737271"));
  EXPECT_EQ(encoded(Opcode::kXrcFetchAdd),
            with_bth({0xB4}, "00facade01020304050607081112131421222324252627283132333435363738"));
  EXPECT_EQ(encoded(Opcode::kXrcAck), with_bth({0xB1}, "61515253"));
  EXPECT_EQ(encoded(Opcode::kCnp), with_bth({0x81}, "00000000000000000000000000000000"));
}

TEST(EncodeHeaders, Cnp_IsTheRecordedOne) {
  Builder b = Packet(Opcode::kCnp, 0);
  b.headers.bth.migrated = false;
  b.headers.bth.becn = true;
  b.headers.bth.dest_qpn = Qpn{0x12};
  b.ip_id = 1;
  const testing::ParsedFrame recorded = testing::Parse(testing::kCnpFrame);
  std::vector<uint8_t> bytes = b.Build(false);
  Path path = b.path();
  std::swap(path.source, path.destination);
  SealIcrc(path, 1, bytes.data(), bytes.size() - kIcrcLength);
  EXPECT_EQ(bytes, recorded.datagram);
}

TEST(HeaderLength, IsWhatEncodeHeadersWrites) {
  uint8_t bytes[kMaxHeaderLength];
  for (const uint8_t number : DefinedOpcodes()) {
    Headers headers;
    headers.bth.opcode = static_cast<Opcode>(number);
    EXPECT_EQ(EncodeHeaders(headers, bytes), HeaderLength(headers.bth.opcode)) << int{number};
  }
}

TEST(Decode, GoldenFrames_AreTaken) {
  for (const auto& golden : testing::kGoldenFrames) {
    const testing::ParsedFrame frame = testing::Parse(golden);
    RxPacket packet;
    EXPECT_EQ(DropReasonName(Decode(frame.Rx(), packet)), DropReasonName(DropReason::kNone))
        << golden.name;
  }
}

TEST(Decode, UnknownIpId_IsFilledIn) {
  Builder b = Packet(Opcode::kRcSendOnly, 16);
  b.ip_id = 0xBEEF;
  const std::vector<uint8_t> bytes = b.Build();
  RxDatagram datagram{b.meta(), bytes};
  datagram.meta.ip_id_known = false;
  datagram.meta.ip_id = 0;
  RxPacket packet;
  ASSERT_EQ(Decode(datagram, packet), DropReason::kNone);
  EXPECT_EQ(packet.meta.ip_id, 0xBEEF);
  EXPECT_FALSE(packet.meta.ip_id_known);
}

TEST(Decode, ValuesOfAnEarlierPacket_AreGone) {
  Builder write = Packet(Opcode::kRcWriteOnlyImm, 4);
  write.headers = FullHeaders(Opcode::kRcWriteOnlyImm);
  const std::vector<uint8_t> first = write.Build();
  Builder send = Packet(Opcode::kRcSendOnly, 4);
  const std::vector<uint8_t> second = send.Build();
  RxPacket packet;
  ASSERT_EQ(Decode({write.meta(), first}, packet), DropReason::kNone);
  ASSERT_EQ(Decode({send.meta(), second}, packet), DropReason::kNone);
  EXPECT_EQ(packet.headers.reth.rkey, 0u);
  EXPECT_EQ(packet.headers.immediate, 0u);
}

TEST(Decode, ShortDatagram_IsTruncated) {
  for (const uint8_t number : DefinedOpcodes()) {
    Builder b = Packet(static_cast<Opcode>(number), 0);
    const std::vector<uint8_t> bytes = b.Build();
    for (size_t size = 0; size < bytes.size(); ++size) {
      std::vector<uint8_t> part(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_EQ(b.ReasonOf(part), DropReason::k_truncated) << int{number} << ' ' << size;
    }
  }
}

TEST(Decode, PadBeyondTheEnd_IsTruncated) {
  for (const uint8_t number : DefinedOpcodes()) {
    Builder b = Packet(static_cast<Opcode>(number), 0);
    std::vector<uint8_t> bytes = b.Build();
    bytes[1] |= 0x30;
    EXPECT_EQ(b.ReasonOf(bytes), DropReason::k_truncated) << int{number};
  }
}

TEST(Decode, TransportVersion_MustBeZero) {
  for (uint8_t version = 1; version < 16; ++version) {
    Builder b = Packet(Opcode::kRcSendOnly, 8);
    std::vector<uint8_t> bytes = b.Build();
    bytes[1] |= version;
    EXPECT_EQ(b.ReasonOf(bytes), DropReason::k_bad_version);
  }
}

TEST(Decode, UndefinedOpcode_IsNamed) {
  Builder b = Packet(Opcode::kRcSendOnly, 64);
  const std::vector<uint8_t> good = b.Build();
  int undefined = 0;
  for (int number = 0; number < 256; ++number) {
    if (TraitsOf(static_cast<uint8_t>(number)).defined()) continue;
    std::vector<uint8_t> bytes = good;
    bytes[0] = static_cast<uint8_t>(number);
    EXPECT_EQ(b.ReasonOf(bytes), DropReason::k_unknown_opcode) << number;
    ++undefined;
  }
  EXPECT_EQ(undefined, 256 - 68);
}

TEST(Decode, PadThatIsNotThePayloads_IsBadPad) {
  for (size_t payload = 1; payload <= 8; ++payload) {
    Builder b = Packet(Opcode::kRcSendOnly, payload);
    const std::vector<uint8_t> good = b.Build();
    // A datagram whose length is not a multiple of four has no valid pad count.
    for (size_t cut = 1; cut < 4; ++cut) {
      std::vector<uint8_t> bytes = good;
      bytes.resize(bytes.size() + cut);
      EXPECT_EQ(b.ReasonOf(bytes), DropReason::k_bad_pad) << payload << ' ' << cut;
    }
  }
}

TEST(Decode, PadInFirstOrMiddle_IsBadPad) {
  for (const Opcode opcode : {Opcode::kRcSendFirst, Opcode::kRcSendMiddle, Opcode::kRcWriteFirst,
                              Opcode::kRcReadResponseMiddle, Opcode::kUcWriteMiddle}) {
    Builder b = Packet(opcode, 254);
    EXPECT_EQ(b.ReasonOf(b.Build()), DropReason::k_bad_pad) << TraitsOf(opcode).name;
  }
}

TEST(Decode, EmptyFirstMiddleOrLast_IsBadLength) {
  for (const uint8_t number : DefinedOpcodes()) {
    const OpcodeTraits& traits = TraitsOf(number);
    Builder b = Packet(static_cast<Opcode>(number), 0);
    const bool may_be_empty =
        traits.position == Position::kOnly && traits.operation != Operation::kAtomicWrite;
    EXPECT_EQ(b.ReasonOf(b.Build()), may_be_empty ? DropReason::kNone : DropReason::k_bad_length)
        << traits.name;
  }
}

TEST(Decode, PayloadWhereNoneBelongs_IsBadLength) {
  for (const uint8_t number : DefinedOpcodes()) {
    const OpcodeTraits& traits = TraitsOf(number);
    if (traits.has_payload) continue;
    for (const size_t extra : {1, 4, 5, 64}) {
      Builder b = Packet(static_cast<Opcode>(number), extra);
      EXPECT_EQ(b.ReasonOf(b.Build()), DropReason::k_bad_length) << traits.name << ' ' << extra;
    }
  }
}

TEST(Decode, AtomicWriteOfOtherThanEightBytes_IsBadLength) {
  for (const size_t payload : {0, 4, 7, 9, 12, 16}) {
    Builder b = Packet(Opcode::kRcAtomicWrite, payload);
    EXPECT_EQ(b.ReasonOf(b.Build()), DropReason::k_bad_length) << payload;
  }
}

TEST(Decode, PayloadAboveTheLargestMtu_IsBadLength) {
  EXPECT_EQ(Packet(Opcode::kRcSendOnly, 4096).ReasonOf(Packet(Opcode::kRcSendOnly, 4096).Build()),
            DropReason::kNone);
  for (const size_t payload : {4097, 4100, 60000}) {
    Builder b = Packet(Opcode::kRcSendOnly, payload);
    EXPECT_EQ(b.ReasonOf(b.Build()), DropReason::k_bad_length) << payload;
  }
}

TEST(Decode, PartitionKey_IsTheDefaultOne) {
  for (int bit = 0; bit < 16; ++bit) {
    Builder b = Packet(Opcode::kRcSendOnly, 8);
    b.headers.bth.pkey = static_cast<uint16_t>(0xFFFF ^ 1 << bit);
    EXPECT_EQ(b.ReasonOf(b.Build()), bit == 15 ? DropReason::kNone : DropReason::k_bad_pkey) << bit;
  }
}

TEST(Decode, WrongIcrc_IsBadIcrc) {
  Builder b = Packet(Opcode::kRcSendOnly, 8);
  const std::vector<uint8_t> bytes = b.Build(false);
  RxPacket packet;
  EXPECT_EQ(Decode({b.meta(), bytes}, packet), DropReason::k_bad_icrc);
}

// Faults are repaired one after the other; the reason is always that of the first one left.
TEST(Decode, SeveralFaults_AreReportedInOrder) {
  Builder b = Packet(Opcode::kRcSendLast, 0);
  std::vector<uint8_t> bytes = b.Build(false);
  bytes[0] = 0x15;
  bytes[1] |= 0x01;
  bytes[2] = 0;
  bytes.resize(bytes.size() + 1);
  RxPacket packet;
  const auto reason = [&] { return Decode({b.meta(), bytes}, packet); };
  EXPECT_EQ(Decode({b.meta(), std::span(bytes).first(15)}, packet), DropReason::k_truncated);
  EXPECT_EQ(reason(), DropReason::k_bad_version);
  bytes[1] &= 0xF0;
  EXPECT_EQ(reason(), DropReason::k_unknown_opcode);
  bytes[0] = 0x02;
  EXPECT_EQ(reason(), DropReason::k_bad_pad);
  bytes.pop_back();
  EXPECT_EQ(reason(), DropReason::k_bad_length);
  bytes.resize(bytes.size() + 4);
  EXPECT_EQ(reason(), DropReason::k_bad_pkey);
  bytes[2] = 0xFF;
  EXPECT_EQ(reason(), DropReason::k_bad_icrc);
  b.Seal(bytes, bytes.size() - kIcrcLength);
  EXPECT_EQ(reason(), DropReason::kNone);
}

}  // namespace
}  // namespace rocegw::wire
