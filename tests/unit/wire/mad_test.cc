// SPDX-License-Identifier: Apache-2.0
// CM MADs: recorded frames, every field's position against an independent table, round trips,
// refusals.
#include "gateway/wire/mad.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "gateway/wire/codec.h"
#include "tests/support/golden_frames.h"
#include "tests/support/random.h"

namespace rocegw::wire {
namespace {

using metrics::DropReason;

std::vector<uint8_t> MadOfFrame(const testing::GoldenFrame& golden) {
  testing::ParsedFrame frame = testing::Parse(golden);
  RxPacket packet;
  EXPECT_EQ(Decode({frame.meta, frame.datagram}, packet), DropReason::kNone);
  EXPECT_EQ(packet.headers.bth.dest_qpn, kGsiQpn);
  EXPECT_EQ(packet.headers.deth.qkey, kGsiQkey);
  return {packet.payload.begin(), packet.payload.end()};
}

MadBytes Encoded(const CmMad& mad) {
  MadBytes bytes;
  bytes.fill(0xEE);
  EncodeMad(mad, bytes);
  return bytes;
}

TEST(Mad, RequestFrame_Decodes_ToItsFields) {
  const std::vector<uint8_t> bytes = MadOfFrame(testing::kCmRequestFrame);
  CmMad mad;
  ASSERT_EQ(DecodeMad(bytes, mad), DropReason::kNone);
  EXPECT_EQ(mad.transaction_id, 0xaabbccdd11111111u);
  EXPECT_EQ(mad.attribute_modifier, 1u);
  const auto* req = std::get_if<CmReq>(&mad.body);
  ASSERT_NE(req, nullptr);
  EXPECT_EQ(req->local_comm_id, 0x11111111u);
  EXPECT_EQ(req->vendor_id, 0x0015b3u);
  EXPECT_EQ(req->service_id, IpServiceId(0x0106, 7471));
  EXPECT_EQ(req->local_ca_guid, 0x0200000000000001u);
  EXPECT_EQ(req->local_qpn, Qpn{0x12});
  EXPECT_EQ(req->responder_resources, 16);
  EXPECT_EQ(req->initiator_depth, 16);
  EXPECT_EQ(req->remote_response_timeout, 20);
  EXPECT_EQ(req->transport, CmTransport::kRc);
  EXPECT_FALSE(req->flow_control);
  EXPECT_EQ(req->starting_psn, Psn(0xabcdef));
  EXPECT_EQ(req->local_response_timeout, 20);
  EXPECT_EQ(req->retry_count, 7);
  EXPECT_EQ(req->pkey, 0xFFFF);
  EXPECT_EQ(req->path_mtu, 3);
  EXPECT_EQ(req->rnr_retry_count, 7);
  EXPECT_EQ(req->max_cm_retries, 15);
  EXPECT_FALSE(req->srq);
  EXPECT_EQ(req->primary.local_lid, 0xFFFF);
  EXPECT_EQ(req->primary.remote_lid, 0xFFFF);
  EXPECT_EQ(req->primary.local_gid, Gid::FromV4(0xC0000201));
  EXPECT_EQ(req->primary.remote_gid, Gid::FromV4(0xC0000202));
  EXPECT_EQ(req->primary.flow_label, 0x12345u);
  EXPECT_EQ(req->primary.hop_limit, 64);
  EXPECT_FALSE(req->primary.subnet_local);
  EXPECT_EQ(req->primary.local_ack_timeout, 18);
  EXPECT_EQ(req->alternate, CmPath{});

  IpCmHeader header;
  ASSERT_TRUE(DecodeIpCm(std::span(req->private_data).first<kIpCmHeaderLength>(), header));
  EXPECT_EQ(header.ip_version, 4);
  EXPECT_EQ(header.source_port, 50000);
  EXPECT_EQ(header.source, Gid::FromV4(0xC0000201));
  EXPECT_EQ(header.destination, Gid::FromV4(0xC0000202));
}

TEST(Mad, ReplyFrame_Decodes_ToItsFields) {
  const std::vector<uint8_t> bytes = MadOfFrame(testing::kCmReplyFrame);
  CmMad mad;
  ASSERT_EQ(DecodeMad(bytes, mad), DropReason::kNone);
  EXPECT_EQ(mad.attribute_modifier, 1u);
  const auto* rep = std::get_if<CmRep>(&mad.body);
  ASSERT_NE(rep, nullptr);
  EXPECT_EQ(rep->local_comm_id, 0x22222222u);
  EXPECT_EQ(rep->remote_comm_id, 0x11111111u);
  EXPECT_EQ(rep->local_qpn, Qpn{0x11});
  EXPECT_EQ(rep->vendor_id, 0x0015b3u);
  EXPECT_EQ(rep->starting_psn, Psn(1));
  EXPECT_EQ(rep->responder_resources, 16);
  EXPECT_EQ(rep->initiator_depth, 16);
  EXPECT_EQ(rep->target_ack_delay, 16);
  EXPECT_EQ(rep->rnr_retry_count, 7);
  EXPECT_EQ(rep->local_ca_guid, 0x0200000000000002u);
}

TEST(Mad, RecordedFrames_DecodedAndEncoded_AreTheSameBytes) {
  for (const auto& golden : {testing::kCmRequestFrame, testing::kCmReplyFrame}) {
    const std::vector<uint8_t> bytes = MadOfFrame(golden);
    CmMad mad;
    ASSERT_EQ(DecodeMad(bytes, mad), DropReason::kNone) << golden.name;
    EXPECT_TRUE(std::ranges::equal(Encoded(mad), bytes)) << golden.name;
  }
}

// Field with its position, and how to set all of its bits.
struct FieldPlace {
  const char* name;
  size_t byte;
  unsigned bit;
  unsigned width;
  std::function<CmBody()> all_ones;
};

template <typename Message, typename Set>
FieldPlace Place(const char* name, size_t byte, unsigned bit, unsigned width, Set set) {
  return {name, byte, bit, width, [set]() -> CmBody {
            Message message{};
            if constexpr (requires { message.pkey; }) message.pkey = 0;
            if constexpr (requires { message.reason; }) message.reason = RejectReason{};
            set(message);
            return message;
          }};
}

#define FIELD(message, expression, byte, bit, width) \
  Place<message>(#message "." #expression, byte, bit, width, [](message& m) { m.expression; })

std::vector<FieldPlace> PathPlaces(const char* name, size_t base, CmPath CmReq::*path) {
  auto place = [&](size_t byte, unsigned bit, unsigned width, auto set) {
    return Place<CmReq>(name, base + byte, bit, width, [path, set](CmReq& m) { set(m.*path); });
  };
  return {
      place(0, 0, 16, [](CmPath& p) { p.local_lid = 0xFFFF; }),
      place(2, 0, 16, [](CmPath& p) { p.remote_lid = 0xFFFF; }),
      place(4, 0, 128, [](CmPath& p) { p.local_gid.bytes.fill(0xFF); }),
      place(20, 0, 128, [](CmPath& p) { p.remote_gid.bytes.fill(0xFF); }),
      place(36, 0, 20, [](CmPath& p) { p.flow_label = 0xFFFFF; }),
      place(39, 2, 6, [](CmPath& p) { p.packet_rate = 0x3F; }),
      place(40, 0, 8, [](CmPath& p) { p.traffic_class = 0xFF; }),
      place(41, 0, 8, [](CmPath& p) { p.hop_limit = 0xFF; }),
      place(42, 0, 4, [](CmPath& p) { p.service_level = 0xF; }),
      place(42, 4, 1, [](CmPath& p) { p.subnet_local = true; }),
      place(43, 0, 5, [](CmPath& p) { p.local_ack_timeout = 0x1F; }),
  };
}

// Written from the tables of the standard (12.6); bit 0 is the most significant of its byte.
std::vector<FieldPlace> AllPlaces() {
  std::vector<FieldPlace> places = {
      FIELD(CmReq, local_comm_id = 0xFFFFFFFF, 0, 0, 32),
      FIELD(CmReq, vendor_id = 0xFFFFFF, 5, 0, 24),
      FIELD(CmReq, service_id = ~0ull, 8, 0, 64),
      FIELD(CmReq, local_ca_guid = ~0ull, 16, 0, 64),
      FIELD(CmReq, local_qkey = 0xFFFFFFFF, 28, 0, 32),
      FIELD(CmReq, local_qpn.value = 0xFFFFFF, 32, 0, 24),
      FIELD(CmReq, responder_resources = 0xFF, 35, 0, 8),
      FIELD(CmReq, local_eecn = 0xFFFFFF, 36, 0, 24),
      FIELD(CmReq, initiator_depth = 0xFF, 39, 0, 8),
      FIELD(CmReq, remote_eecn = 0xFFFFFF, 40, 0, 24),
      FIELD(CmReq, remote_response_timeout = 0x1F, 43, 0, 5),
      FIELD(CmReq, transport = CmTransport::kExtended, 43, 5, 2),
      FIELD(CmReq, flow_control = true, 43, 7, 1),
      FIELD(CmReq, starting_psn = Psn(0xFFFFFF), 44, 0, 24),
      FIELD(CmReq, local_response_timeout = 0x1F, 47, 0, 5),
      FIELD(CmReq, retry_count = 7, 47, 5, 3),
      FIELD(CmReq, pkey = 0xFFFF, 48, 0, 16),
      FIELD(CmReq, path_mtu = 0xF, 50, 0, 4),
      FIELD(CmReq, rdc_exists = true, 50, 4, 1),
      FIELD(CmReq, rnr_retry_count = 7, 50, 5, 3),
      FIELD(CmReq, max_cm_retries = 0xF, 51, 0, 4),
      FIELD(CmReq, srq = true, 51, 4, 1),
      FIELD(CmReq, extended_transport = 7, 51, 5, 3),
      FIELD(CmReq, private_data.fill(0xFF), 140, 0, 92 * 8),
      FIELD(CmMra, local_comm_id = 0xFFFFFFFF, 0, 0, 32),
      FIELD(CmMra, remote_comm_id = 0xFFFFFFFF, 4, 0, 32),
      FIELD(CmMra, answered = CmAnswered{3}, 8, 0, 2),
      FIELD(CmMra, service_timeout = 0x1F, 9, 0, 5),
      FIELD(CmMra, private_data.fill(0xFF), 10, 0, 222 * 8),
      FIELD(CmRej, local_comm_id = 0xFFFFFFFF, 0, 0, 32),
      FIELD(CmRej, remote_comm_id = 0xFFFFFFFF, 4, 0, 32),
      FIELD(CmRej, answered = CmAnswered{3}, 8, 0, 2),
      FIELD(CmRej, info_length = 0x7F, 9, 0, 7),
      FIELD(CmRej, reason = RejectReason{0xFFFF}, 10, 0, 16),
      FIELD(CmRej, info.fill(0xFF), 12, 0, 72 * 8),
      FIELD(CmRej, private_data.fill(0xFF), 84, 0, 148 * 8),
      FIELD(CmRep, local_comm_id = 0xFFFFFFFF, 0, 0, 32),
      FIELD(CmRep, remote_comm_id = 0xFFFFFFFF, 4, 0, 32),
      FIELD(CmRep, local_qkey = 0xFFFFFFFF, 8, 0, 32),
      FIELD(CmRep, local_qpn.value = 0xFFFFFF, 12, 0, 24),
      FIELD(CmRep, vendor_id = 0xFF0000, 15, 0, 8),
      FIELD(CmRep, local_eecn = 0xFFFFFF, 16, 0, 24),
      FIELD(CmRep, vendor_id = 0x00FF00, 19, 0, 8),
      FIELD(CmRep, starting_psn = Psn(0xFFFFFF), 20, 0, 24),
      FIELD(CmRep, vendor_id = 0x0000FF, 23, 0, 8),
      FIELD(CmRep, responder_resources = 0xFF, 24, 0, 8),
      FIELD(CmRep, initiator_depth = 0xFF, 25, 0, 8),
      FIELD(CmRep, target_ack_delay = 0x1F, 26, 0, 5),
      FIELD(CmRep, failover_accepted = 3, 26, 5, 2),
      FIELD(CmRep, flow_control = true, 26, 7, 1),
      FIELD(CmRep, rnr_retry_count = 7, 27, 0, 3),
      FIELD(CmRep, srq = true, 27, 3, 1),
      FIELD(CmRep, local_ca_guid = ~0ull, 28, 0, 64),
      FIELD(CmRep, private_data.fill(0xFF), 36, 0, 196 * 8),
      FIELD(CmRtu, local_comm_id = 0xFFFFFFFF, 0, 0, 32),
      FIELD(CmRtu, remote_comm_id = 0xFFFFFFFF, 4, 0, 32),
      FIELD(CmRtu, private_data.fill(0xFF), 8, 0, 224 * 8),
      FIELD(CmDreq, local_comm_id = 0xFFFFFFFF, 0, 0, 32),
      FIELD(CmDreq, remote_comm_id = 0xFFFFFFFF, 4, 0, 32),
      FIELD(CmDreq, remote_qpn.value = 0xFFFFFF, 8, 0, 24),
      FIELD(CmDreq, private_data.fill(0xFF), 12, 0, 220 * 8),
      FIELD(CmDrep, local_comm_id = 0xFFFFFFFF, 0, 0, 32),
      FIELD(CmDrep, remote_comm_id = 0xFFFFFFFF, 4, 0, 32),
      FIELD(CmDrep, private_data.fill(0xFF), 8, 0, 224 * 8),
      FIELD(CmSidrReq, request_id = 0xFFFFFFFF, 0, 0, 32),
      FIELD(CmSidrReq, pkey = 0xFFFF, 4, 0, 16),
      FIELD(CmSidrReq, service_id = ~0ull, 8, 0, 64),
      FIELD(CmSidrReq, private_data.fill(0xFF), 16, 0, 216 * 8),
      FIELD(CmSidrRep, request_id = 0xFFFFFFFF, 0, 0, 32),
      FIELD(CmSidrRep, status = SidrStatus{0xFF}, 4, 0, 8),
      FIELD(CmSidrRep, info_length = 0xFF, 5, 0, 8),
      FIELD(CmSidrRep, vendor_id = 0xFFFF00, 6, 0, 16),
      FIELD(CmSidrRep, qpn.value = 0xFFFFFF, 8, 0, 24),
      FIELD(CmSidrRep, vendor_id = 0x0000FF, 11, 0, 8),
      FIELD(CmSidrRep, service_id = ~0ull, 12, 0, 64),
      FIELD(CmSidrRep, qkey = 0xFFFFFFFF, 20, 0, 32),
      FIELD(CmSidrRep, info.fill(0xFF), 24, 0, 72 * 8),
      FIELD(CmSidrRep, private_data.fill(0xFF), 96, 0, 136 * 8),
  };
  for (FieldPlace& place : PathPlaces("primary", 52, &CmReq::primary)) places.push_back(place);
  for (FieldPlace& place : PathPlaces("alternate", 96, &CmReq::alternate)) places.push_back(place);
  return places;
}

TEST(Mad, EveryField_AllOnes_SetsExactlyItsBits) {
  for (const FieldPlace& place : AllPlaces()) {
    const MadBytes bytes = Encoded({0, 0, place.all_ones()});
    for (size_t i = 0; i < (kMadLength - kMadHeaderLength) * 8; ++i) {
      const size_t first = place.byte * 8 + place.bit;
      const bool wanted = i >= first && i < first + place.width;
      const bool found = (bytes[kMadHeaderLength + i / 8] >> (7 - i % 8) & 1) != 0;
      ASSERT_EQ(found, wanted) << place.name << " at CM byte " << i / 8 << " bit " << i % 8;
    }
    CmMad back;
    ASSERT_EQ(DecodeMad(bytes, back), DropReason::kNone) << place.name;
    EXPECT_EQ(back.body, place.all_ones()) << place.name;
  }
}

TEST(Mad, Header_OfEveryMessage_HasTheCmClassAndItsAttribute) {
  const CmBody bodies[] = {
      CmReq{},  CmMra{},  CmRej{},     CmRep{},     CmRtu{},
      CmDreq{}, CmDrep{}, CmSidrReq{}, CmSidrRep{}, CmPathMigration{CmAttribute::kApr}};
  const uint8_t attributes[] = {0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x1A};
  for (size_t i = 0; i < std::size(bodies); ++i) {
    const MadBytes bytes = Encoded({0x0102030405060708, 0x090A0B0C, bodies[i]});
    const uint8_t header[] = {1, 7, 2, 3,    0,    0,   0, 0, 1,
                              2, 3, 4, 5,    6,    7,   8, 0, attributes[i],
                              0, 0, 9, 0x0A, 0x0B, 0x0C};
    EXPECT_TRUE(std::equal(std::begin(header), std::end(header), bytes.begin())) << i;
  }
}

TEST(Mad, RandomBytes_DecodedAndEncoded_KeepEveryDefinedBit) {
  rocegw::testing::Random random(rocegw::testing::TestSeed(20261121));
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> bytes = random.Bytes(kMadLength);
    bytes[0] = 1;
    bytes[1] = 7;
    bytes[2] = 2;
    bytes[3] = 3;
    bytes[16] = 0;
    bytes[17] = static_cast<uint8_t>(0x10 + random.Below(11));
    CmMad once;
    ASSERT_EQ(DecodeMad(bytes, once), DropReason::kNone);
    CmMad twice;
    ASSERT_EQ(DecodeMad(Encoded(once), twice), DropReason::kNone);
    ASSERT_EQ(once, twice) << round << ": " << Describe(once);
  }
}

struct Refusal {
  const char* name;
  size_t byte;
  uint8_t value;
  DropReason reason;
};

TEST(Mad, ForeignHeaders_AreRefused_WithTheirReason) {
  const Refusal refusals[] = {
      {"base version", 0, 2, DropReason::k_mad_malformed},
      {"performance management class", 1, 4, DropReason::k_mad_unknown_class},
      {"vendor class", 1, 0x30, DropReason::k_mad_unknown_class},
      {"class version", 2, 1, DropReason::k_mad_malformed},
      {"method get", 3, 1, DropReason::k_mad_malformed},
      {"method response", 3, 0x81, DropReason::k_mad_malformed},
      {"attribute below", 17, 0x0F, DropReason::k_mad_malformed},
      {"attribute above", 17, 0x1B, DropReason::k_mad_malformed},
      {"attribute high byte", 16, 1, DropReason::k_mad_malformed},
  };
  for (const Refusal& refusal : refusals) {
    MadBytes bytes = Encoded({0, 0, CmReq{}});
    ASSERT_EQ(CheckMad(bytes), DropReason::kNone);
    bytes[refusal.byte] = refusal.value;
    CmMad mad;
    EXPECT_EQ(DecodeMad(bytes, mad), refusal.reason) << refusal.name;
    EXPECT_EQ(CheckMad(bytes), refusal.reason) << refusal.name;
  }
}

TEST(Mad, WrongSizes_AreMalformed) {
  std::vector<uint8_t> bytes(kMadLength + 1, 0);
  const MadBytes good = Encoded({0, 0, CmReq{}});
  std::copy(good.begin(), good.end(), bytes.begin());
  CmMad mad;
  for (const size_t size :
       {size_t{0}, size_t{1}, kMadHeaderLength, kMadLength - 1, kMadLength + 1}) {
    EXPECT_EQ(DecodeMad(std::span(bytes).first(size), mad), DropReason::k_mad_malformed) << size;
  }
}

TEST(IpCm, Version6Addresses_RoundTrip) {
  IpCmHeader header;
  header.ip_version = 6;
  header.source_port = 40000;
  for (size_t i = 0; i < 16; ++i) {
    header.source.bytes[i] = static_cast<uint8_t>(0x20 + i);
    header.destination.bytes[i] = static_cast<uint8_t>(0xA0 + i);
  }
  std::array<uint8_t, kIpCmHeaderLength> bytes{};
  EncodeIpCm(header, bytes);
  EXPECT_EQ(bytes[0], 0);
  EXPECT_EQ(bytes[1], 0x60);
  EXPECT_EQ(bytes[4], 0x20);
  EXPECT_EQ(bytes[20], 0xA0);
  IpCmHeader back;
  ASSERT_TRUE(DecodeIpCm(bytes, back));
  EXPECT_EQ(back, header);
}

TEST(IpCm, Version4Addresses_LieRightAligned) {
  IpCmHeader header;
  header.source = Gid::FromV4(0xC0000201);
  header.destination = Gid::FromV4(0xC0000202);
  header.source_port = 0x1234;
  std::array<uint8_t, kIpCmHeaderLength> bytes{};
  EncodeIpCm(header, bytes);
  std::array<uint8_t, kIpCmHeaderLength> wanted{0, 0x40, 0x12, 0x34};
  const uint8_t source[] = {192, 0, 2, 1};
  const uint8_t destination[] = {192, 0, 2, 2};
  std::copy(std::begin(source), std::end(source), wanted.begin() + 16);
  std::copy(std::begin(destination), std::end(destination), wanted.begin() + 32);
  EXPECT_EQ(bytes, wanted);
}

TEST(IpCm, OtherVersions_AreRefused) {
  std::array<uint8_t, kIpCmHeaderLength> bytes{};
  IpCmHeader header;
  bytes[1] = 0x50;
  EXPECT_FALSE(DecodeIpCm(bytes, header));
  bytes[1] = 0x40;
  EXPECT_TRUE(DecodeIpCm(bytes, header));
  bytes[0] = 0x10;
  EXPECT_FALSE(DecodeIpCm(bytes, header));
}

TEST(Mad, Describe_NamesMessageAndIds) {
  CmReq req;
  req.local_comm_id = 0xAB;
  req.vendor_id = 0x15B3;
  req.path_mtu = 3;
  req.service_id = IpServiceId(0x0106, 7471);
  EXPECT_EQ(Describe(CmMad{0, 1, req}),
            "CM REQ comm=0xab service=0x1061d2f qp=0x000000 psn=0 vendor=0x0015b3/0x1 mtu=1024");
  EXPECT_EQ(Describe(CmMad{0, 0, CmDrep{1, 2, {}}}), "CM DREP comm=0x1>0x2");
  EXPECT_EQ(Describe(CmMad{0, 0, CmPathMigration{}}), "CM LAP");
}

}  // namespace
}  // namespace rocegw::wire
