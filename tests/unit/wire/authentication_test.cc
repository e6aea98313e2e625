// SPDX-License-Identifier: Apache-2.0
// Tags of control packets and discovery MADs: their coverage, and the keys that verify them.
#include "gateway/wire/authentication.h"

#include <gtest/gtest.h>

#include <vector>

#include "gateway/wire/channel_header.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::wire {
namespace {

using metrics::DropReason;
using Octets = std::vector<uint8_t>;

constexpr SecretKey kKey = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
constexpr SecretKey kOther = {1, 2};
const Gid kFrom = Gid::FromV4(0xC0000201);
const Gid kTo = Gid::FromV4(0xC0000202);
constexpr Qpn kAcceptor{0x1234};
constexpr size_t kTaggedLength = kChannelControlLength + kSequenceLength + kTagLength;

Octets SealedOpen(const SecretKey& key = kKey) {
  const ChannelControl open{.kind = ControlKind::kOpen,
                            .channel = 0x0A0B0C,
                            .epoch = 0x11121314,
                            .instance = 0x61626364,
                            .window = 64,
                            .features = kOptionPresent | kOptionAuthentication,
                            .tagged = true,
                            .sequence = 7};
  Octets bytes(kMaxControlLength);
  bytes.resize(EncodeControl(open, bytes.data()));
  EXPECT_EQ(bytes.size(), kTaggedLength);
  SealControl(key, kFrom, kTo, kAcceptor, bytes);
  return bytes;
}

bool Authentic(const Octets& bytes, std::initializer_list<SecretKey> keys = {kKey}) {
  return IsAuthentic({keys.begin(), keys.size()}, kFrom, kTo, kAcceptor, bytes);
}

// Test vector of the paper's appendix A.
TEST(Authentication, SipHash_IsThePapers) {
  Octets input;
  for (uint8_t i = 0; i < 15; ++i) input.push_back(i);
  EXPECT_EQ(SipHash(kKey, input), 0xa129ca6149be45e5u);
}

TEST(Authentication, SealedControl_DecodesAndVerifies) {
  const Octets bytes = SealedOpen();
  ChannelControl control;
  ASSERT_EQ(DecodeControl(bytes, control), DropReason::kNone);
  EXPECT_TRUE(control.tagged);
  EXPECT_EQ(control.sequence, 7u);
  Octets again(kMaxControlLength);
  again.resize(EncodeControl(control, again.data()));
  EXPECT_EQ(again, bytes);
  EXPECT_TRUE(Authentic(bytes));
}

TEST(Authentication, AnyBitThatIsChanged_IsSeen) {
  const Octets good = SealedOpen();
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    Octets bytes = good;
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    EXPECT_FALSE(Authentic(bytes)) << bit;
  }
}

TEST(Authentication, OtherAddressesOrNumber_AreSeen) {
  const Octets bytes = SealedOpen();
  const std::span keys(&kKey, 1);
  EXPECT_FALSE(IsAuthentic(keys, kTo, kFrom, kAcceptor, bytes)) << "reflected";
  EXPECT_FALSE(IsAuthentic(keys, Gid::FromV4(0xC0000203), kTo, kAcceptor, bytes));
  EXPECT_FALSE(IsAuthentic(keys, kFrom, Gid::FromV4(0xC0000203), kAcceptor, bytes));
  EXPECT_FALSE(IsAuthentic(keys, kFrom, kTo, Qpn{0x1235}, bytes));
}

TEST(Authentication, AnyKeyOfTheSet_Verifies) {
  EXPECT_TRUE(Authentic(SealedOpen(kOther), {kKey, kOther}));
  EXPECT_FALSE(Authentic(SealedOpen(kOther), {kKey}));
  EXPECT_FALSE(Authentic(SealedOpen(), {}));
}

TEST(Authentication, TaggedControl_HasItsLength) {
  Octets bytes = SealedOpen();
  ChannelControl control;
  bytes.resize(kChannelControlLength);
  EXPECT_EQ(DecodeControl(bytes, control), DropReason::k_bad_length);
  bytes.resize(kMaxControlLength + 4);
  EXPECT_EQ(DecodeControl(bytes, control), DropReason::k_bad_length);
  bytes = SealedOpen();
  std::fill(bytes.begin() + kChannelControlLength, bytes.end() - kTagLength, uint8_t{0});
  EXPECT_EQ(DecodeControl(bytes, control), DropReason::k_channel_field) << "sequence 0";
  bytes = SealedOpen();
  bytes[1] = 0;
  EXPECT_EQ(DecodeControl(bytes, control), DropReason::k_bad_length) << "without the flag";
}

MadBytes SealedMad() {
  GatewayMad mad;
  mad.transaction_id = 0x0102030405060708;
  mad.info.instance = 9;
  mad.info.workers = 64;
  mad.info.features = kOptionPresent | kOptionChannel;
  for (uint32_t i = 0; i < 64; ++i) mad.info.acceptors[i] = Qpn{i << 18 | 0x2FFFF};
  MadBytes bytes;
  EncodeGatewayMad(mad, kDefaultVendorId, bytes);
  SealGatewayMad(kKey, kFrom, kTo, bytes);
  return bytes;
}

TEST(Authentication, SealedMad_DecodesAndVerifies) {
  const MadBytes bytes = SealedMad();
  GatewayMad mad;
  ASSERT_EQ(DecodeGatewayMad(bytes, kDefaultVendorId, mad), DropReason::kNone);
  EXPECT_TRUE(mad.tagged);
  EXPECT_EQ(mad.info.acceptors[63], (Qpn{63u << 18 | 0x2FFFF})) << "the tag overlaps nothing";
  EXPECT_TRUE(IsAuthenticMad({&kKey, 1}, kFrom, kTo, bytes));
  EXPECT_FALSE(IsAuthenticMad({&kKey, 1}, kTo, kFrom, bytes));
  EXPECT_FALSE(IsAuthenticMad({&kOther, 1}, kFrom, kTo, bytes));
  MadBytes again;
  EncodeGatewayMad(mad, kDefaultVendorId, again);
  EXPECT_EQ(again, bytes);
}

TEST(Authentication, AnyBitOfAMad_IsCovered) {
  const MadBytes good = SealedMad();
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    MadBytes bytes = good;
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    EXPECT_FALSE(IsAuthenticMad({&kKey, 1}, kFrom, kTo, bytes)) << bit;
  }
}

// A tag of one kind of message is invalid for the other.
TEST(Authentication, KindsOfMessages_HaveTagsOfTheirOwn) {
  EXPECT_FALSE(IsAuthentic({&kKey, 1}, kFrom, kTo, kGsiQpn, SealedMad()));
}

}  // namespace
}  // namespace rocegw::wire
