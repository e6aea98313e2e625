// SPDX-License-Identifier: Apache-2.0
// Bundles of channel packets: the bytes of one, every refusal, and datagrams that come out as they
// went in.
#include "gateway/wire/channel_bundle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "gateway/wire/codec.h"
#include "gateway/wire/describe/describe.h"

namespace rocegw::wire {
namespace {

using metrics::DropReason;
using Octets = std::vector<uint8_t>;

// Returns a datagram without ICRC: a BTH and `body`, padded.
Octets DatagramOf(Opcode opcode, uint32_t psn, const Octets& body) {
  Headers headers;
  headers.bth.opcode = opcode;
  headers.bth.dest_qpn = Qpn{0x123456};
  headers.bth.psn = Psn(psn);
  headers.bth.set_hint(0x7F);
  headers.bth.pad_count = static_cast<uint8_t>(-body.size() & 3);
  Octets bytes(kBthLength);
  EncodeHeaders(headers, bytes.data());
  bytes.insert(bytes.end(), body.begin(), body.end());
  bytes.resize(bytes.size() + headers.bth.pad_count);
  return bytes;
}

Octets BundleOf(const std::vector<Octets>& datagrams) {
  Octets bundle = datagrams.at(0);
  const size_t first = bundle.size();
  bundle.resize(kBthLength + kMaxBundle);
  size_t length = BeginBundle(bundle.data(), first);
  for (size_t i = 1; i < datagrams.size(); ++i)
    length = AppendToBundle(bundle.data(), length, datagrams[i]);
  bundle.resize(length);
  return bundle;
}

std::span<const uint8_t> ContentOf(const Octets& bundle) {
  return std::span(bundle).subspan(kBthLength);
}

TEST(ChannelBundle, TwoDatagrams_AreTheBytesOfTheDocument) {
  const Octets bundle = BundleOf({DatagramOf(Opcode::kChannelFrame, 0x0A0B0C, {1, 2, 3, 4, 5}),
                                  DatagramOf(Opcode::kChannelAck, 0xFFFFFF, {6, 7, 8, 9})});
  const Octets expected = {0xC3, 0x40, 0xFF, 0xFF, 0x7F, 0x12, 0x34, 0x56, 0x00, 0x0A,
                           0x0B, 0x0C, 0xC0, 0x0A, 0x0B, 0x0C, 0,    0,    0,    5,
                           1,    2,    3,    4,    5,    0,    0,    0,    0xC1, 0xFF,
                           0xFF, 0xFF, 0,    0,    0,    4,    6,    7,    8,    9};
  EXPECT_EQ(bundle, expected);
}

TEST(ChannelBundle, Entries_AreTheDatagramsThatWentIn) {
  std::vector<Octets> datagrams;
  for (uint32_t i = 0; i < 20; ++i) {
    const Opcode opcode = i % 5 == 4 ? Opcode::kChannelAck : Opcode::kChannelFrame;
    datagrams.push_back(DatagramOf(opcode, 0xFFFFF0 + i, Octets(1 + i * 7, uint8_t(i + 1))));
  }
  const Octets bundle = BundleOf(datagrams);
  ASSERT_EQ(CheckBundle(ContentOf(bundle)), DropReason::kNone);
  size_t expected = kBthLength;
  for (const Octets& datagram : datagrams) expected += EntryLength(datagram);
  EXPECT_EQ(bundle.size(), expected);
  std::span<const uint8_t> rest = ContentOf(bundle);
  BundleEntry entry;
  for (const Octets& datagram : datagrams) {
    ASSERT_TRUE(TakeEntry(rest, entry));
    Octets alone;
    const size_t length = UnbundleTo(bundle, entry, alone);
    ASSERT_EQ(alone.size(), length + kIcrcLength);
    alone.resize(length);
    EXPECT_EQ(alone, datagram);
  }
  EXPECT_FALSE(TakeEntry(rest, entry));
}

TEST(ChannelBundle, PeekedDestination_IsThatOfTheDecodedFrame) {
  ChannelFrame frame;
  frame.kind = FrameKind::kReply;
  frame.flags = kFrameLast;
  frame.destination = Qpn{0xABCDEF};
  Octets body(kMaxFrameLength);
  body.resize(EncodeFrame(frame, body.data()));
  BundleEntry entry;
  entry.body = body;
  EXPECT_EQ(PeekDestination(entry.body), frame.destination);
  EXPECT_EQ(PeekKind(entry), frame.kind);
  entry.body = entry.body.first(10);
  EXPECT_EQ(PeekDestination(entry.body), kInvalidQpn);
  entry.body = {};
  EXPECT_EQ(PeekKind(entry), FrameKind::kVoid);
}

TEST(ChannelBundle, OnlyFramesAndAcknowledgements_MayBeEntries) {
  EXPECT_TRUE(MayBundle(DatagramOf(Opcode::kChannelFrame, 1, {1})));
  EXPECT_TRUE(MayBundle(DatagramOf(Opcode::kChannelAck, 1, {1})));
  EXPECT_FALSE(MayBundle(DatagramOf(Opcode::kChannelControl, 1, {1})));
  EXPECT_FALSE(MayBundle(DatagramOf(Opcode::kChannelBundle, 1, {1})));
  EXPECT_FALSE(MayBundle(DatagramOf(Opcode::kRcSendOnly, 1, {1})));
  EXPECT_FALSE(MayBundle(DatagramOf(Opcode::kChannelFrame, 1, {})));
}

// An acknowledgement has no hint for congestion control; the frames behind it keep theirs.
TEST(ChannelBundle, HintOfTheFrames_IsThatOfTheBundle) {
  Octets acknowledgement = DatagramOf(Opcode::kChannelAck, 1, {1, 2, 3, 4});
  acknowledgement[4] = 0;
  EXPECT_EQ(BundleOf({acknowledgement, DatagramOf(Opcode::kChannelFrame, 2, {1})})[4], 0x7F);
  EXPECT_EQ(BundleOf({DatagramOf(Opcode::kChannelFrame, 2, {1}), acknowledgement})[4], 0x7F);
}

class MalformedBundle : public ::testing::Test {
 protected:
  DropReason Check() const { return CheckBundle(content_); }

  // Entries of 5 and 4 bytes, at 0 and 16.
  Octets content_ = [] {
    const Octets bundle = BundleOf({DatagramOf(Opcode::kChannelFrame, 1, {1, 2, 3, 4, 5}),
                                    DatagramOf(Opcode::kChannelAck, 2, {6, 7, 8, 9})});
    return Octets(bundle.begin() + kBthLength, bundle.end());
  }();
};

TEST_F(MalformedBundle, OneEntryOrNone_IsRefused) {
  ASSERT_EQ(Check(), DropReason::kNone);
  content_.resize(16);
  EXPECT_EQ(Check(), DropReason::k_bad_length);
  content_.clear();
  EXPECT_EQ(Check(), DropReason::k_bad_length);
}

TEST_F(MalformedBundle, CutAnywhere_IsRefused) {
  for (size_t length = 0; length < content_.size(); ++length) {
    const Octets cut(content_.begin(), content_.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_NE(CheckBundle(cut), DropReason::kNone) << length;
  }
}

TEST_F(MalformedBundle, EntryOfAnotherOpcode_IsRefused) {
  for (const uint8_t opcode : {0x00, 0x04, 0xC2, 0xC3, 0xC4}) {
    content_[16] = opcode;
    EXPECT_EQ(Check(), DropReason::k_channel_kind) << int{opcode};
  }
}

TEST_F(MalformedBundle, ReservedBitsAndPad_MustBeZero) {
  for (const size_t at : {4, 5, 13, 14, 15}) {
    content_[at] = 1;
    EXPECT_EQ(Check(), DropReason::k_channel_field) << at;
    content_[at] = 0;
  }
  EXPECT_EQ(Check(), DropReason::kNone);
}

TEST_F(MalformedBundle, LengthOfAnEntry_MustFit) {
  content_[7] = 0;
  EXPECT_EQ(Check(), DropReason::k_bad_length);
  content_[7] = 5;
  content_[23] = 5;
  EXPECT_EQ(Check(), DropReason::k_bad_length) << "beyond the end";
  content_[22] = 0xFF;
  EXPECT_EQ(Check(), DropReason::k_bad_length);
}

TEST(ChannelBundle, Description_ListsTheEntries) {
  ChannelFrame nothing;
  nothing.epoch = 0xE1E2;
  Octets body(kMaxFrameLength);
  body.resize(EncodeFrame(nothing, body.data()));
  const Octets bundle = BundleOf(
      {DatagramOf(Opcode::kChannelFrame, 7, body), DatagramOf(Opcode::kChannelFrame, 8, body)});
  EXPECT_EQ(DescribeChannel(Opcode::kChannelBundle, ContentOf(bundle)),
            " [CH Frame psn=7 void epoch=0xe1e2 payload=0]"
            " [CH Frame psn=8 void epoch=0xe1e2 payload=0]");
  EXPECT_EQ(DescribeChannel(Opcode::kChannelBundle, ContentOf(bundle).first(8)),
            " malformed: bad_length");
}

}  // namespace
}  // namespace rocegw::wire
