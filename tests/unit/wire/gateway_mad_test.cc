// SPDX-License-Identifier: Apache-2.0
// MADs between gateways: every byte as documented, and refusals.
#include "gateway/wire/gateway_mad.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rocegw::wire {
namespace {

using metrics::DropReason;

constexpr uint32_t kOui = 0x02ABCD;

GatewayMad Answer() {
  GatewayMad mad;
  mad.response = true;
  mad.transaction_id = 0x0102030405060708;
  mad.info.workers = 2;
  mad.info.instance = 0xA1A2A3A4;
  mad.info.epoch = 7;
  mad.info.features = kOptionPresent | kOptionChannel | kOptionCcHint;
  mad.info.window = 0x00040000;
  mad.info.acceptors[0] = Qpn{0x000123};
  mad.info.acceptors[1] = Qpn{0xFC0456};  // bucket 63
  return mad;
}

MadBytes GatewayBytes(const GatewayMad& mad, uint32_t oui = kOui) {
  MadBytes bytes;
  EncodeGatewayMad(mad, oui, bytes);
  return bytes;
}

DropReason Decode(const MadBytes& bytes) {
  GatewayMad mad;
  return DecodeGatewayMad(bytes, kOui, mad);
}

TEST(GatewayMad, Bytes_LieWhereTheyAreDocumented) {
  MadBytes expected{};
  const auto put = [&](size_t at, std::initializer_list<uint8_t> bytes) {
    std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<ptrdiff_t>(at));
  };
  put(0, {0x01, 0x3C, 0x01, 0x81});
  put(8, {1, 2, 3, 4, 5, 6, 7, 8});
  put(16, {0x00, 0x10});
  put(37, {0x02, 0xAB, 0xCD});
  put(40, {1, 2, 0, 0});
  put(44, {0xA1, 0xA2, 0xA3, 0xA4});
  put(48, {0, 0, 0, 7});
  put(52, {0x00, 0x00, 0x08, 0x03});
  put(56, {0x00, 0x04, 0x00, 0x00});
  put(60, {0x00, 0x01, 0x23, 0xFC, 0x04, 0x56});
  EXPECT_EQ(GatewayBytes(Answer()), expected);
}

TEST(GatewayMad, WhatIsEncoded_IsDecoded) {
  for (const bool response : {false, true}) {
    GatewayMad mad = Answer();
    mad.response = response;
    GatewayMad back;
    ASSERT_EQ(DecodeGatewayMad(GatewayBytes(mad), kOui, back), DropReason::kNone);
    EXPECT_EQ(back, mad);
  }
}

TEST(GatewayMad, SixtyFourWorkers_FitWithTheirAcceptors) {
  GatewayMad mad = Answer();
  mad.info.workers = 64;
  for (uint32_t i = 0; i < 64; ++i) mad.info.acceptors[i] = Qpn{i << 18 | (i + 5)};
  GatewayMad back;
  ASSERT_EQ(DecodeGatewayMad(GatewayBytes(mad), kOui, back), DropReason::kNone);
  EXPECT_EQ(back.info.acceptors[63], (Qpn{63u << 18 | 68}));
}

TEST(GatewayMad, WithoutChannels_NamesNoAcceptors) {
  GatewayMad mad = Answer();
  mad.info.features = kOptionPresent;
  const MadBytes bytes = GatewayBytes(mad);
  EXPECT_TRUE(std::all_of(bytes.begin() + 60, bytes.end(), [](uint8_t byte) { return byte == 0; }));
  EXPECT_EQ(Decode(bytes), DropReason::kNone);
}

TEST(GatewayMad, WorkerOfAQpn_IsItsBucketModuloTheWorkers) {
  GatewayInfo info;
  info.workers = 3;
  EXPECT_EQ(info.WorkerOf(Qpn{0x000005}), 0u);
  EXPECT_EQ(info.WorkerOf(Qpn{4u << 18}), 1u);
  EXPECT_EQ(info.WorkerOf(Qpn{63u << 18 | 9}), 0u);
}

TEST(GatewayMad, Refusals_HaveTheirReasons) {
  const struct {
    const char* name;
    size_t byte;
    uint8_t value;
    DropReason reason;
  } cases[] = {
      {"base version", 0, 2, DropReason::k_mad_malformed},
      {"class", 1, 0x3D, DropReason::k_mad_unknown_class},
      {"OUI", 39, 0xCE, DropReason::k_mad_unknown_class},
      {"class version", 2, 2, DropReason::k_mad_malformed},
      {"method", 3, 0x03, DropReason::k_mad_malformed},
      {"attribute", 17, 0x11, DropReason::k_mad_unknown_class},
      {"format version", 40, 0, DropReason::k_mad_malformed},
      {"no workers", 41, 0, DropReason::k_mad_malformed},
      {"too many workers", 41, 65, DropReason::k_mad_malformed},
      {"options without the bit of a gateway", 55, 0x02, DropReason::k_mad_malformed},
      {"acceptor of another worker", 60, 0x04, DropReason::k_mad_malformed},
  };
  for (const auto& refused : cases) {
    MadBytes bytes = GatewayBytes(Answer());
    bytes[refused.byte] = refused.value;
    EXPECT_EQ(Decode(bytes), refused.reason) << refused.name;
  }
  MadBytes bytes = GatewayBytes(Answer());
  std::fill_n(bytes.begin() + 44, 4, uint8_t{0});
  EXPECT_EQ(Decode(bytes), DropReason::k_mad_malformed) << "instance 0";
  for (const uint8_t qpn : {0, 1}) {
    bytes = GatewayBytes(Answer());
    bytes[60] = bytes[61] = 0;
    bytes[62] = qpn;
    EXPECT_EQ(Decode(bytes), DropReason::k_mad_malformed) << "acceptor " << int{qpn};
  }
  GatewayMad mad;
  bytes = GatewayBytes(Answer());
  EXPECT_EQ(DecodeGatewayMad(std::span(bytes).first(255), kOui, mad), DropReason::k_mad_malformed);
}

TEST(GatewayMad, ErrorStatus_NeedsNoContents) {
  GatewayMad question = Answer();
  question.response = false;
  MadBytes refusal;
  ASSERT_TRUE(RefuseMad(GatewayBytes(question), refusal));
  GatewayMad back;
  ASSERT_EQ(DecodeGatewayMad(refusal, kOui, back), DropReason::kNone);
  EXPECT_TRUE(back.response);
  EXPECT_EQ(back.status, kMadStatusUnsupported);
  EXPECT_EQ(back.transaction_id, question.transaction_id);
  EXPECT_EQ(back.info, GatewayInfo{});
}

TEST(GatewayMad, OnlyQuestions_AreRefused) {
  MadBytes refusal;
  EXPECT_FALSE(RefuseMad(GatewayBytes(Answer()), refusal));
  const MadBytes question = GatewayBytes({});
  EXPECT_FALSE(RefuseMad(std::span(question).first(200), refusal));
}

TEST(GatewayMad, VendorClasses_AreTheRangeWithAnOui) {
  MadBytes bytes{};
  for (const int inside : {0x30, 0x3C, 0x4F}) {
    bytes[1] = static_cast<uint8_t>(inside);
    EXPECT_TRUE(IsVendorMad(bytes));
  }
  for (const int outside : {0x07, 0x2F, 0x50}) {
    bytes[1] = static_cast<uint8_t>(outside);
    EXPECT_FALSE(IsVendorMad(bytes));
  }
}

TEST(GatewayMad, Options_HaveNames) {
  EXPECT_EQ(OptionText(kOptionPresent | kOptionChannel | kOptionSelectiveAck | kOptionCcRtt),
            "channel, selective acknowledgement, RTT-based control");
  EXPECT_EQ(OptionText(kOptionPresent), "nothing");
  EXPECT_EQ(OptionText(kOptionEndpointReads), "READs and atomics of endpoints");
  EXPECT_EQ(OptionText(kOptionFetchOperate), "further atomics");
  EXPECT_EQ(OptionText(1u << 15), "bit 15");
  EXPECT_EQ(OptionText(1u << 30), "bit 30");
  EXPECT_EQ(Describe(Answer().info),
            "gateway 0xa1a2a3a4/7 workers=2 window=262144 options=0x803: channel, proportional "
            "hints");
}

TEST(AgreedOptions, NothingWithoutAChannel_AndOneKindOfCongestionControl) {
  constexpr uint32_t kChannel = kOptionPresent | kOptionChannel | kOptionSelectiveAck;
  EXPECT_EQ(AgreedOptions((kChannel | kOptionCcHint) & ~kOptionChannel), 0u);
  EXPECT_EQ(AgreedOptions((kChannel | kOptionCcHint) & ~kOptionSelectiveAck), 0u);
  EXPECT_EQ(AgreedOptions(kChannel | kOptionCcDcqcn | kOptionCcHint), kChannel | kOptionCcHint);
  EXPECT_EQ(AgreedOptions(kChannel | kOptionCcStatic | kOptionCcDctcp), kChannel | kOptionCcDctcp);
  EXPECT_EQ(AgreedOptions(kChannel), kChannel);
}

}  // namespace
}  // namespace rocegw::wire
