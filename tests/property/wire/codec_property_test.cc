// SPDX-License-Identifier: Apache-2.0
// Random headers through encode and decode; random bytes through decode.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "gateway/wire/codec.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/describe/describe.h"
#include "tests/support/random.h"

namespace rocegw::wire {
namespace {

using metrics::DropReason;
using rocegw::testing::Random;
using rocegw::testing::TestSeed;

Headers SomeHeaders(Random& random, Opcode opcode) {
  Headers h;
  h.bth.opcode = opcode;
  h.bth.solicited = random.Coin();
  h.bth.migrated = random.Coin();
  h.bth.pkey = random.Coin() ? 0xFFFF : 0x7FFF;
  h.bth.fecn = random.Coin();
  h.bth.becn = random.Coin();
  h.bth.dest_qpn = Qpn{random.Value<uint32_t>() & 0xFFFFFF};
  h.bth.ack_request = random.Coin();
  h.bth.psn = Psn(random.Value<uint32_t>());
  h.xrc_srq = random.Value<uint32_t>() & 0xFFFFFF;
  h.reth = {random.Bits(), random.Value<uint32_t>(), random.Value<uint32_t>()};
  h.atomic = {random.Bits(), random.Value<uint32_t>(), random.Bits(), random.Bits()};
  h.atomic_ack = random.Bits();
  h.aeth = {random.Value<uint8_t>(), random.Value<uint32_t>() & 0xFFFFFF};
  h.deth = {random.Value<uint32_t>(), Qpn{random.Value<uint32_t>() & 0xFFFFFF}};
  h.immediate = random.Value<uint32_t>();
  h.invalidate_rkey = random.Value<uint32_t>();
  h.feth = random.Value<uint32_t>();
  return h;
}

size_t SomePayload(Random& random, const OpcodeTraits& traits) {
  if (!traits.has_payload) return 0;
  if (traits.operation == Operation::kAtomicWrite) return 8;
  if (traits.position == Position::kFirst || traits.position == Position::kMiddle) {
    return 4 * random.Between(1, 1024);
  }
  return random.Between(traits.position == Position::kLast ? 1 : 0, 4096);
}

// Encoding a decoded packet gives the original bytes: no field is lost or moved.
TEST(Codec, EncodeOfDecoded_IsTheSameBytes) {
  Random random(TestSeed(61));
  for (int round = 0; round < 40000; ++round) {
    const auto opcode = random.Value<uint8_t>();
    const OpcodeTraits& traits = TraitsOf(opcode);
    if (!traits.defined()) continue;
    Headers headers = SomeHeaders(random, static_cast<Opcode>(opcode));
    const std::vector<uint8_t> payload = random.Bytes(SomePayload(random, traits));
    headers.bth.pad_count = static_cast<uint8_t>(-payload.size() & 3);
    std::vector<uint8_t> bytes(kMaxHeaderLength);
    bytes.resize(EncodeHeaders(headers, bytes.data()));
    ASSERT_EQ(bytes.size(), HeaderLength(headers.bth.opcode));
    const size_t header_length = bytes.size();
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    bytes.resize(bytes.size() + headers.bth.pad_count + kIcrcLength);
    Path path;
    path.source = Gid::FromV4(random.Value<uint32_t>());
    path.destination = Gid::FromV4(random.Value<uint32_t>());
    SealIcrc(path, 7, bytes.data(), bytes.size() - kIcrcLength);
    RxDatagram datagram{.meta = {.source = path.source,
                                 .destination = path.destination,
                                 .source_port = path.source_port},
                        .bytes = bytes};
    RxPacket packet;
    ASSERT_EQ(Decode(datagram, packet), DropReason::kNone) << traits.name;
    ASSERT_EQ(packet.meta.ip_id, 7);
    ASSERT_TRUE(std::ranges::equal(packet.payload, payload)) << traits.name;
    std::array<uint8_t, kMaxHeaderLength> again{};
    ASSERT_EQ(EncodeHeaders(packet.headers, again.data()), header_length);
    ASSERT_TRUE(std::equal(again.begin(), again.begin() + static_cast<ptrdiff_t>(header_length),
                           bytes.begin()))
        << traits.name;
    ASSERT_FALSE(Describe(packet).empty());
  }
}

// Any input gives a drop reason, or a payload inside the datagram that fits its opcode.
TEST(Codec, RandomBytes_AreRefusedOrConsistent) {
  Random random(TestSeed(62));
  int taken = 0;
  for (int round = 0; round < 200000; ++round) {
    std::vector<uint8_t> bytes = random.Bytes(random.Below(120));
    if (bytes.size() >= 4) {
      bytes[1] &= 0xF0;
      bytes[2] = bytes[3] = 0xFF;
    }
    Path path;
    path.source = Gid::FromV4(1);
    path.destination = Gid::FromV4(2);
    if (bytes.size() >= kBthLength + kIcrcLength) {
      SealIcrc(path, 0, bytes.data(), bytes.size() - kIcrcLength);
    }
    RxDatagram datagram{.meta = {.source = path.source,
                                 .destination = path.destination,
                                 .source_port = path.source_port},
                        .bytes = bytes};
    RxPacket packet;
    if (Decode(datagram, packet) != DropReason::kNone) continue;
    ++taken;
    ASSERT_TRUE(packet.traits != nullptr && packet.traits->defined());
    ASSERT_EQ(packet.traits->header_length + packet.payload.size() + packet.headers.bth.pad_count +
                  kIcrcLength,
              bytes.size());
    if (!packet.payload.empty()) {
      ASSERT_EQ(packet.payload.data(), bytes.data() + packet.traits->header_length);
    }
  }
  EXPECT_GT(taken, 1000);
}

}  // namespace
}  // namespace rocegw::wire
