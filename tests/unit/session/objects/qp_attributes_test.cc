// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/commands/qp_attributes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "gateway/port/steering.h"
#include "gateway/wire/source_port.h"

namespace rocegw::session {
namespace {

Device TwoAddresses() {
  Device device;
  device.active_mtu = 4;
  device.gids = {wire::Gid::FromV4(0x0A000001), wire::Gid{}};
  device.gids[1].bytes[0] = 0xFD;
  return device;
}

rocegw_qp_attr Connected(uint32_t flow_label) {
  rocegw_qp_attr attr{};
  attr.dest_qpn = 0xABCDEF;
  attr.av.flow_label = flow_label;
  const wire::Gid to = wire::Gid::FromV4(0x0A000002);
  std::memcpy(attr.av.dgid, to.bytes.data(), 16);
  attr.av.traffic_class = 0x6A;
  attr.av.hop_limit = 100;
  return attr;
}

TEST(FromClient, InitiatorDepthOfAStrongerPeer_IsCut) {
  rocegw_qp_attr attr{};
  for (const auto& [asked, taken] : {std::pair{128, 16}, {17, 16}, {16, 16}, {1, 1}, {0, 0}}) {
    attr.max_rd_atomic = static_cast<uint8_t>(asked);
    const auto to = FromClient(attr, verbs::kAttrMaxQpRdAtomic, TwoAddresses(), {}, {});
    ASSERT_TRUE(to.ok());
    EXPECT_EQ(to.value().max_rd_atomic, taken);
  }
}

TEST(FromClient, FlowLabelGiven_DecidesTheSourcePort) {
  const auto to =
      FromClient(Connected(0x12345), verbs::kAttrAv | verbs::kAttrDestQpn, TwoAddresses(), {}, {});
  ASSERT_TRUE(to.ok());
  EXPECT_EQ(to.value().path.source_port, wire::SourcePortOfFlowLabel(0x12345));
  EXPECT_EQ(to.value().flow_label, 0x12345u);
  EXPECT_EQ(to.value().path.traffic_class, 0x6A);
  EXPECT_EQ(to.value().path.hop_limit, 100);
}

TEST(FromClient, NoFlowLabel_PortNamesTheDestinationsBucket) {
  const uint32_t mask = verbs::kAttrAv | verbs::kAttrDestQpn;
  const auto a = FromClient(Connected(0), mask, TwoAddresses(), {}, {});
  ASSERT_TRUE(a.ok());
  EXPECT_GE(a.value().path.source_port, 0xC000);
  EXPECT_EQ(a.value().path.source_port & 63, port::BucketOf(Qpn{0xABCDEF}));
  // The address vector alone: keeps the QP's destination.
  const auto b = FromClient(Connected(0), verbs::kAttrAv, TwoAddresses(), {}, Qpn{0x040000});
  EXPECT_EQ(b.value().path.source_port & 63, 1);
}

TEST(FromClient, OutOfRange_IsRefusedOnlyWhenTheMaskNamesIt) {
  const struct {
    uint32_t bit;
    void (*spoil)(rocegw_qp_attr&);
  } cases[] = {
      {verbs::kAttrState, [](rocegw_qp_attr& a) { a.qp_state = 7; }},
      {verbs::kAttrCurState, [](rocegw_qp_attr& a) { a.cur_qp_state = 99; }},
      {verbs::kAttrPort, [](rocegw_qp_attr& a) { a.port_num = 2; }},
      {verbs::kAttrPkeyIndex, [](rocegw_qp_attr& a) { a.pkey_index = 1; }},
      {verbs::kAttrPathMtu, [](rocegw_qp_attr& a) { a.path_mtu = 5; }},
      {verbs::kAttrPathMtu, [](rocegw_qp_attr& a) { a.path_mtu = 0; }},
      {verbs::kAttrTimeout, [](rocegw_qp_attr& a) { a.timeout = 32; }},
      {verbs::kAttrRetryCnt, [](rocegw_qp_attr& a) { a.retry_cnt = 8; }},
      {verbs::kAttrRnrRetry, [](rocegw_qp_attr& a) { a.rnr_retry = 8; }},
      {verbs::kAttrMinRnrTimer, [](rocegw_qp_attr& a) { a.min_rnr_timer = 32; }},
      {verbs::kAttrMaxDestRdAtomic, [](rocegw_qp_attr& a) { a.max_dest_rd_atomic = 17; }},
      {verbs::kAttrDestQpn, [](rocegw_qp_attr& a) { a.dest_qpn = 0x1000000; }},
      {verbs::kAttrDestQpn, [](rocegw_qp_attr& a) { a.dest_qpn = 0; }},
      {verbs::kAttrAltPath, [](rocegw_qp_attr&) {}},
      {verbs::kAttrCap, [](rocegw_qp_attr&) {}},
      {verbs::kAttrAv, [](rocegw_qp_attr& a) { a.av.sgid_index = 2; }},
      {verbs::kAttrAv, [](rocegw_qp_attr& a) { a.av.sgid_index = 1; }},
      {verbs::kAttrAv, [](rocegw_qp_attr& a) { std::memset(a.av.dgid, 0, 16); }},
  };
  int index = 0;
  for (const auto& c : cases) {
    rocegw_qp_attr attr = Connected(0);
    attr.port_num = 1;
    attr.path_mtu = 3;
    c.spoil(attr);
    const auto refused = FromClient(attr, c.bit, TwoAddresses(), {}, {});
    EXPECT_FALSE(refused.ok()) << index;
    EXPECT_EQ(refused.status().error(), EINVAL) << index;
    EXPECT_TRUE(FromClient(attr, 0, TwoAddresses(), {}, {}).ok()) << index;
    ++index;
  }
}

TEST(ToClient, RoundTrip_KeepsWhatWasSet) {
  rocegw_qp_attr attr = Connected(0x54321);
  attr.qp_state = attr.cur_qp_state = 3;
  attr.path_mtu = 4;
  attr.qkey = 0x11111111;
  attr.rq_psn = 0xFFFFFF;
  attr.sq_psn = 17;
  attr.access_flags = 15 | verbs::kAccessFlushGlobal;
  attr.port_num = 1;
  attr.max_rd_atomic = 16;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 31;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 6;
  attr.service_level = 2;
  attr.en_sqd_async_notify = 1;
  const auto to = FromClient(attr, verbs::kAttrAv | verbs::kAttrDestQpn, TwoAddresses(), {}, {});
  ASSERT_TRUE(to.ok());
  const rocegw_qp_attr back = ToClient(to.value());
  EXPECT_EQ(std::memcmp(&back, &attr, sizeof attr), 0);
}

TEST(ToClient, Draining_IsTold) {
  verbs::QpAttributes attributes;
  EXPECT_EQ(ToClient(attributes).sq_draining, 0);
  attributes.sq_draining = true;
  EXPECT_EQ(ToClient(attributes).sq_draining, 1);
}

}  // namespace
}  // namespace rocegw::session
