// SPDX-License-Identifier: Apache-2.0
// The opcode table against an independent one, by number.
#include "gateway/wire/opcode.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "gateway/wire/headers.h"

namespace rocegw::wire {
namespace {

// Header lengths by opcode number (BTH 12, RETH 16, AETH 4, AtomicETH 28, AtomicAckETH 8, ImmDt 4,
// IETH 4, DETH 8, FETH 4).
const std::map<int, int> kLengths = {
    {0x00, 12}, {0x01, 12}, {0x02, 12}, {0x03, 16}, {0x04, 12}, {0x05, 16}, {0x06, 28}, {0x07, 12},
    {0x08, 12}, {0x09, 16}, {0x0A, 28}, {0x0B, 32}, {0x0C, 28}, {0x0D, 16}, {0x0E, 12}, {0x0F, 16},
    {0x10, 16}, {0x11, 16}, {0x12, 24}, {0x13, 40}, {0x14, 40}, {0x16, 16}, {0x17, 16}, {0x1C, 32},
    {0x1D, 28}, {0x20, 12}, {0x21, 12}, {0x22, 12}, {0x23, 16}, {0x24, 12}, {0x25, 16}, {0x26, 28},
    {0x27, 12}, {0x28, 12}, {0x29, 16}, {0x2A, 28}, {0x2B, 32}, {0x64, 20}, {0x65, 24}, {0x81, 28},
    {0xA0, 16}, {0xA1, 16}, {0xA2, 16}, {0xA3, 20}, {0xA4, 16}, {0xA5, 20}, {0xA6, 32}, {0xA7, 16},
    {0xA8, 16}, {0xA9, 20}, {0xAA, 32}, {0xAB, 36}, {0xAC, 32}, {0xAD, 16}, {0xAE, 12}, {0xAF, 16},
    {0xB0, 16}, {0xB1, 16}, {0xB2, 24}, {0xB3, 44}, {0xB4, 44}, {0xB6, 20}, {0xB7, 20}, {0xC0, 12},
    {0xC1, 12}, {0xC2, 12}, {0xC3, 12}, {0xC4, 12}};

TEST(TraitsOf, EveryNumber_IsDefinedExactlyWhenListed) {
  for (int number = 0; number < 256; ++number) {
    const OpcodeTraits& traits = TraitsOf(static_cast<uint8_t>(number));
    const auto found = kLengths.find(number);
    ASSERT_EQ(traits.defined(), found != kLengths.end()) << number;
    if (found != kLengths.end()) {
      EXPECT_EQ(traits.header_length, found->second) << traits.name;
      EXPECT_LE(traits.header_length, kMaxHeaderLength) << traits.name;
    } else {
      EXPECT_EQ(traits.service, Service::kNone) << number;
      EXPECT_EQ(traits.operation, Operation::kNone) << number;
    }
  }
}

TEST(TraitsOf, Names_AreUnique) {
  std::set<std::string> names;
  for (const auto& [number, length] : kLengths) {
    EXPECT_TRUE(names.insert(TraitsOf(static_cast<uint8_t>(number)).name).second) << number;
  }
}

TEST(TraitsOf, Service_FollowsTheUpperBits) {
  for (const auto& [number, length] : kLengths) {
    const Service expected = number >= 0xC0   ? Service::kChannel
                             : number >= 0xA0 ? Service::kXrc
                             : number == 0x81 ? Service::kCnp
                             : number >= 0x60 ? Service::kUd
                             : number >= 0x20 ? Service::kUc
                                              : Service::kRc;
    EXPECT_EQ(TraitsOf(static_cast<uint8_t>(number)).service, expected) << number;
  }
}

// Except for the service and what it adds to every packet.
void ExpectTwins(const OpcodeTraits& rc, const OpcodeTraits& other) {
  EXPECT_EQ(rc.operation, other.operation) << rc.name;
  EXPECT_EQ(rc.position, other.position) << rc.name;
  EXPECT_EQ(rc.has_reth, other.has_reth) << rc.name;
  EXPECT_EQ(rc.has_aeth, other.has_aeth) << rc.name;
  EXPECT_EQ(rc.has_atomic_eth, other.has_atomic_eth) << rc.name;
  EXPECT_EQ(rc.has_atomic_ack_eth, other.has_atomic_ack_eth) << rc.name;
  EXPECT_EQ(rc.has_immediate, other.has_immediate) << rc.name;
  EXPECT_EQ(rc.has_invalidate, other.has_invalidate) << rc.name;
  EXPECT_EQ(rc.has_payload, other.has_payload) << rc.name;
  EXPECT_EQ(rc.is_request, other.is_request) << rc.name;
}

TEST(TraitsOf, UcOpcode_HasTheTraitsOfItsRcTwin) {
  for (uint8_t low = 0; low <= 0x0B; ++low) {
    const OpcodeTraits& rc = TraitsOf(low);
    const OpcodeTraits& uc = TraitsOf(static_cast<uint8_t>(0x20 + low));
    EXPECT_EQ(std::string(rc.name).substr(2), std::string(uc.name).substr(2));
    ExpectTwins(rc, uc);
  }
}

TEST(TraitsOf, XrcOpcode_HasTheTraitsOfItsRcTwin) {
  for (uint8_t low = 0; low <= 0x17; ++low) {
    const OpcodeTraits& rc = TraitsOf(low);
    const OpcodeTraits& xrc = TraitsOf(static_cast<uint8_t>(0xA0 + low));
    ASSERT_EQ(rc.defined(), xrc.defined()) << int{low};
    if (!rc.defined()) continue;
    EXPECT_EQ("X" + std::string(rc.name), xrc.name);
    ExpectTwins(rc, xrc);
    EXPECT_FALSE(rc.has_xrceth) << rc.name;
    // Requests name the receive queue, answers do not.
    EXPECT_EQ(xrc.has_xrceth, xrc.is_request) << rc.name;
  }
}

TEST(TraitsOf, Requests_AreWhatARequesterSends) {
  std::set<int> replies;
  for (const auto& [number, length] : kLengths) {
    if (!TraitsOf(static_cast<uint8_t>(number)).is_request) replies.insert(number);
  }
  EXPECT_EQ(replies, (std::set<int>{0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x12, 0x81, 0xAD, 0xAE, 0xAF,
                                    0xB0, 0xB1, 0xB2, 0xC1, 0xC2}));
}

TEST(TraitsOf, Payload_IsCarriedByDataOnly) {
  std::set<int> without;
  for (const auto& [number, length] : kLengths) {
    if (!TraitsOf(static_cast<uint8_t>(number)).has_payload) without.insert(number);
  }
  EXPECT_EQ(without, (std::set<int>{0x0C, 0x11, 0x12, 0x13, 0x14, 0x1C, 0x81, 0xAC, 0xB1, 0xB2,
                                    0xB3, 0xB4}));
}

TEST(TraitsOf, Positions_StartAndEndMessages) {
  EXPECT_TRUE(TraitsOf(Opcode::kRcSendFirst).starts_message());
  EXPECT_FALSE(TraitsOf(Opcode::kRcSendFirst).ends_message());
  EXPECT_FALSE(TraitsOf(Opcode::kRcWriteMiddle).starts_message());
  EXPECT_FALSE(TraitsOf(Opcode::kRcWriteMiddle).ends_message());
  EXPECT_TRUE(TraitsOf(Opcode::kRcSendLastInvalidate).ends_message());
  EXPECT_TRUE(TraitsOf(Opcode::kRcReadRequest).starts_message());
  EXPECT_TRUE(TraitsOf(Opcode::kRcReadRequest).ends_message());
}

}  // namespace
}  // namespace rocegw::wire
