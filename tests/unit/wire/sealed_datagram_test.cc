// SPDX-License-Identifier: Apache-2.0
// Sealed datagrams of channels: the bytes of one, every refusal, and control packets that offer
// seals.
#include "gateway/wire/seal/sealed_datagram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "gateway/wire/channel_header.h"
#include "gateway/wire/describe/describe.h"

namespace rocegw::wire {
namespace {

using metrics::DropReason;
using Octets = std::vector<uint8_t>;

const Path kPath{.source = Gid::FromV4(0x0A000001), .destination = Gid::FromV4(0x0A000002)};
const SealTrailer kTrailer{.encrypted = true,
                           .epoch = 0xE1E2,
                           .channel = Qpn{0x0A0B0C},
                           .key_id = 0x11121314,
                           .sequence = 0x2122232425262728};

// Returns a datagram with five bytes behind the BTH, and space for the trailer.
Octets Datagram(size_t* length, Opcode opcode = Opcode::kChannelFrame) {
  Headers headers;
  headers.bth.opcode = opcode;
  headers.bth.dest_qpn = Qpn{0x123456};
  headers.bth.psn = Psn(0xABCDEF);
  headers.bth.set_hint(0x7F);
  headers.bth.pad_count = 3;
  Octets bytes(kBthLength);
  EncodeHeaders(headers, bytes.data());
  for (const uint8_t byte : {1, 2, 3, 4, 5, 0, 0, 0}) bytes.push_back(byte);
  *length = bytes.size();
  bytes.resize(bytes.size() + kSealLength, 0xEE);
  return bytes;
}

// Returns the packet that a receiver decodes from these bytes.
RxPacket Received(const Octets& bytes) {
  RxPacket packet;
  packet.headers.bth.opcode = static_cast<Opcode>(bytes[0]);
  packet.headers.bth.dest_qpn = Qpn{0x123456};
  packet.headers.bth.psn = Psn(0xABCDEF);
  packet.headers.bth.set_hint(bytes[4]);
  packet.traits = &TraitsOf(bytes[0]);
  packet.meta.source = kPath.source;
  packet.meta.destination = kPath.destination;
  packet.payload = std::span(bytes).subspan(kBthLength);
  return packet;
}

TEST(SealedDatagram, Bytes_AreThoseOfTheDocument) {
  size_t length = 0;
  Octets bytes = Datagram(&length);
  BeginSeal(kPath, kTrailer, bytes.data(), length);
  const Octets expected = {0xC4, 0x40, 0xFF, 0xFF, 0x7F, 0x12, 0x34, 0x56, 0,    0xAB,
                           0xCD, 0xEF, 1,    2,    3,    4,    5,    0,    0,    0,
                           0xC0, 0x1D, 0xE1, 0xE2, 0x0A, 0x0B, 0x0C, 0,    0x11, 0x12,
                           0x13, 0x14, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28};
  ASSERT_EQ(bytes.size(), expected.size() + FrameKey::kTagLength);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), bytes.begin()));
}

TEST(SealedDatagram, Receiver_CoversWhatTheSenderCovered) {
  for (const Opcode opcode : {Opcode::kChannelFrame, Opcode::kChannelAck, Opcode::kChannelBundle}) {
    size_t length = 0;
    Octets bytes = Datagram(&length, opcode);
    const SealHeader covered = BeginSeal(kPath, kTrailer, bytes.data(), length);
    SealedParts parts;
    const RxPacket packet = Received(bytes);
    ASSERT_EQ(DecodeSealed(packet, parts), DropReason::kNone);
    EXPECT_EQ(parts.header, covered);
    SealTrailer trailer = kTrailer;
    trailer.inner = opcode;
    trailer.pad = 3;
    EXPECT_EQ(parts.trailer, trailer);
    EXPECT_EQ(parts.content.size(), 8u);
    const RxPacket inner = Unsealed(packet, parts.trailer, parts.content);
    EXPECT_EQ(inner.traits->operation, TraitsOf(opcode).operation);
    EXPECT_EQ(Octets(inner.payload.begin(), inner.payload.end()), (Octets{1, 2, 3, 4, 5}));
    EXPECT_TRUE(inner.verified);
  }
}

// Everything but reserved bits of the BTH, and the UDP source port, which a path change replaces.
TEST(SealedDatagram, AddressesAndBth_AreCovered) {
  size_t length = 0;
  Octets bytes = Datagram(&length);
  const SealHeader covered = BeginSeal(kPath, kTrailer, bytes.data(), length);
  const auto header_of = [](const RxPacket& packet) {
    SealedParts parts;
    EXPECT_EQ(DecodeSealed(packet, parts), DropReason::kNone);
    return parts.header;
  };
  RxPacket packet = Received(bytes);
  packet.meta.source = kPath.destination;
  EXPECT_NE(header_of(packet), covered);
  packet = Received(bytes);
  packet.meta.destination = kPath.source;
  EXPECT_NE(header_of(packet), covered);
  packet = Received(bytes);
  packet.headers.bth.psn = Psn(1);
  EXPECT_NE(header_of(packet), covered);
  packet = Received(bytes);
  packet.headers.bth.dest_qpn = Qpn{1};
  EXPECT_NE(header_of(packet), covered);
  packet = Received(bytes);
  packet.headers.bth.set_hint(1);
  EXPECT_EQ(header_of(packet), covered) << "switches change the hint";
}

TEST(SealedDatagram, EachRefusal) {
  size_t length = 0;
  Octets sound = Datagram(&length);
  BeginSeal(kPath, kTrailer, sound.data(), length);
  const auto reason_with = [&](size_t at, uint8_t value) {
    Octets bytes = sound;
    bytes[length + at] = value;
    SealedParts parts;
    return DecodeSealed(Received(bytes), parts);
  };
  EXPECT_EQ(reason_with(0, 0xC1), DropReason::kNone);
  EXPECT_EQ(reason_with(0, 0xC2), DropReason::k_channel_kind) << "control packets have tags";
  EXPECT_EQ(reason_with(0, 0xC4), DropReason::k_channel_kind) << "no seal in a seal";
  EXPECT_EQ(reason_with(0, 0x04), DropReason::k_channel_kind) << "nothing native";
  EXPECT_EQ(reason_with(1, 0x2D), DropReason::k_channel_version);
  EXPECT_EQ(reason_with(1, 0x1F), DropReason::k_channel_flags);
  EXPECT_EQ(reason_with(7, 1), DropReason::k_channel_field);
  Octets zero = sound;
  std::fill(zero.begin() + static_cast<ptrdiff_t>(length) + 12,
            zero.begin() + static_cast<ptrdiff_t>(length) + 20, uint8_t{0});
  SealedParts parts;
  EXPECT_EQ(DecodeSealed(Received(zero), parts), DropReason::k_channel_field) << "sequence 0";
  const Octets trailer_alone(sound.end() - kSealLength - kBthLength, sound.end());
  EXPECT_EQ(DecodeSealed(Received(trailer_alone), parts), DropReason::k_truncated);
}

TEST(SealedDatagram, Described_AsFarAsItCanBeRead) {
  size_t length = 0;
  Octets bytes = Datagram(&length);
  BeginSeal(kPath, kTrailer, bytes.data(), length);
  EXPECT_EQ(DescribeChannel(Opcode::kChannelSealed, std::span(bytes).subspan(kBthLength)),
            " from=0x0a0b0c epoch=0xe1e2 key=0x11121314 sequence=2387509390608836392 encrypted=8");
}

TEST(SealOffer, ComesBackAsItWent_OnlyInTaggedOpenings) {
  for (const bool encrypts : {false, true}) {
    ChannelControl control{.channel = 0x123456, .window = 1, .tagged = true, .sequence = 7};
    control.seals = true;
    control.seal.encrypts = encrypts;
    for (size_t i = 0; i < kSaltLength; ++i) control.seal.salt[i] = static_cast<uint8_t>(i + 1);
    Octets bytes(kMaxControlLength);
    ASSERT_EQ(EncodeControl(control, bytes.data()), kMaxControlLength);
    ChannelControl back;
    ASSERT_EQ(DecodeControl(bytes, back), DropReason::kNone);
    EXPECT_EQ(back.seal, control.seal);
    EXPECT_EQ(back.sequence, 7u);
    bytes[1] = kControlSeals;
    EXPECT_EQ(DecodeControl(bytes, back), DropReason::k_channel_flags) << "without a tag";
    bytes[1] = kControlSeals | kControlTagged;
    bytes[59] = 1;
    EXPECT_EQ(DecodeControl(bytes, back), DropReason::k_channel_field);
    bytes[59] = 0;
    bytes[0] = static_cast<uint8_t>(kChannelVersion << 4 | static_cast<int>(ControlKind::kProbe));
    EXPECT_EQ(DecodeControl(bytes, back), DropReason::k_channel_flags) << "no opening";
  }
}

}  // namespace
}  // namespace rocegw::wire
