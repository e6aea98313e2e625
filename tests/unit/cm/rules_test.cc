// SPDX-License-Identifier: Apache-2.0
// Small rules by themselves: times, MTUs, flow labels and ports, vendor IDs, the state table, texts
// for display.
#include <gtest/gtest.h>

#include <string>

#include "gateway/base/timing/token_bucket.h"
#include "gateway/cm/connection/cm_time.h"
#include "gateway/cm/connection/negotiation.h"
#include "gateway/cm/connection/state_table.h"
#include "gateway/cm/describe.h"
#include "gateway/cm/path/path_rules.h"
#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm {
namespace {

TEST(CmTime, Codes_AreLinuxMilliseconds) {
  EXPECT_EQ(CodeToDuration(0), Milliseconds(1));
  EXPECT_EQ(CodeToDuration(8), Milliseconds(1));
  EXPECT_EQ(CodeToDuration(16), Milliseconds(256));
  EXPECT_EQ(CodeToDuration(20), Milliseconds(4096));
  EXPECT_EQ(CodeToDuration(31), Milliseconds(1 << 23));
}

TEST(CmTime, AckTimeouts_AreAsLinuxComputesThem) {
  EXPECT_EQ(AckTimeoutCode(16, 16), 18);
  EXPECT_EQ(AckTimeoutCode(15, 16), 17);
  EXPECT_EQ(AckTimeoutCode(15, 18), 19);
  EXPECT_EQ(AckTimeoutCode(16, 18), 19);
  EXPECT_EQ(AckTimeoutCode(20, 10), 20);
  EXPECT_EQ(AckTimeoutCode(12, 10), 13);
  EXPECT_EQ(AckTimeoutCode(31, 31), 31);
}

TEST(CmTime, Schedule_DoublesUpToTheSlowInterval_ThenEnds) {
  TimePoint now{0};
  ResendSchedule schedule = ResendSchedule::Start(now, Milliseconds(200), Milliseconds(1000), 4);
  EXPECT_EQ(schedule.give_up, TimePoint{} + Milliseconds(4000));
  const int64_t wanted[] = {200, 600, 1400, 2400, 3400, 4000};
  for (const int64_t ms : wanted) {
    now = schedule.Next(now);
    EXPECT_EQ(now, TimePoint{} + Milliseconds(ms));
  }
}

TEST(CmTime, Schedule_HoldsForeignNumbersWithinBounds) {
  const ResendSchedule tiny = ResendSchedule::Start({0}, Milliseconds(200), Milliseconds(1), 1);
  EXPECT_EQ(tiny.give_up.ns, Milliseconds(1600).ns);
  const ResendSchedule huge = ResendSchedule::Start({0}, Milliseconds(200), CodeToDuration(31), 16);
  EXPECT_EQ(huge.longest, Seconds(60));
  EXPECT_EQ(huge.give_up.ns, Seconds(300).ns);
}

TEST(CmTime, Schedule_WithoutAnInterval_StillMovesOn) {
  ResendSchedule schedule{Duration{0}, Duration{0}, TimePoint{Seconds(9).ns}};
  const TimePoint now{Seconds(1).ns};
  EXPECT_GT(schedule.Next(now), now);
  EXPECT_GT(schedule.Next(now), now);
}

TEST(PathRules, Mtu_IsTheNetdevsMinusTheLongestHeaders) {
  EXPECT_EQ(PathMtuCode(1500), 3);
  EXPECT_EQ(PathMtuCode(4191), 4);
  EXPECT_EQ(PathMtuCode(4192), 5);
  EXPECT_EQ(PathMtuCode(9000), 5);
  EXPECT_EQ(PathMtuCode(352), 1);
  EXPECT_EQ(PathMtuCode(351), 0);
}

TEST(PathRules, FlowLabel_ComesFromThePortsOrTheAddress) {
  Endpoint source = testing::AnyV4(50000);
  Endpoint destination = testing::AnyV4(7471);
  EXPECT_EQ(FlowLabel(source, destination), (50000u * 31 + 7471) & 0xFFFFF);
  source.flow_label = 0x12345;
  EXPECT_EQ(FlowLabel(source, destination), (50000u * 31 + 7471) & 0xFFFFF);
  source.address = {};
  EXPECT_EQ(FlowLabel(source, destination), 0x12345u);
}

TEST(PathRules, ServiceIds_OfIpPortSpacesOnly) {
  PortSpace space{};
  uint16_t port = 0;
  ASSERT_TRUE(ParseServiceId(0x0000000001061d2f, space, port));
  EXPECT_EQ(space, PortSpace::kTcp);
  EXPECT_EQ(port, 7471);
  EXPECT_FALSE(ParseServiceId(0x1000000001061d2f, space, port));
  EXPECT_FALSE(ParseServiceId(0x0000000001071d2f, space, port));
}

TEST(StateTable, EveryState_HasANameAndSomethingItWaitsFor) {
  for (size_t s = 0; s < kConnectionStates; ++s) {
    const auto state = static_cast<ConnectionState>(s);
    EXPECT_NE(std::string(StateName(state)), "");
    EXPECT_NE(std::string(StateName(state)), "invalid");
    int handlers = 0;
    for (size_t m = 0; m < std::variant_size_v<wire::CmBody>; ++m)
      handlers += HandlerFor(state, m) != nullptr;
    // Its peer has not heard of it.
    if (state == ConnectionState::kReqHeld)
      EXPECT_EQ(handlers, 0);
    else
      EXPECT_GT(handlers, 0) << StateName(state);
  }
  EXPECT_EQ(HandlerFor(ConnectionState::kEstablished, std::variant_size_v<wire::CmBody> - 1),
            nullptr);
  EXPECT_EQ(HandlerFor(ConnectionState::kCount, 0), nullptr);
}

TEST(TokenBucket, AllowsABurstThenTheRate) {
  TokenBucket bucket(10, 3);
  TimePoint now{Seconds(5).ns};
  EXPECT_TRUE(bucket.Take(now) && bucket.Take(now) && bucket.Take(now));
  EXPECT_FALSE(bucket.Take(now));
  now = now + Milliseconds(100);
  EXPECT_TRUE(bucket.Take(now));
  EXPECT_FALSE(bucket.Take(now));
}

TEST(Describe, Connection_InOneLine) {
  Connection connection;
  connection.active = true;
  connection.state = ConnectionState::kEstablished;
  connection.local_comm_id = 1;
  connection.remote_comm_id = 2;
  connection.local_qpn = Qpn{0x12};
  connection.remote_qpn = Qpn{0x13};
  connection.path.source = testing::V4(1);
  connection.path.destination = testing::V4(2);
  connection.path_mtu = 3;
  EceForRequest({}, {}, connection.ece);
  EceFromReply({0x15B3, 1}, {}, connection.ece);
  connection.reason = 28;
  EXPECT_EQ(Describe(RowOf(connection)),
            "active established 192.0.2.1>192.0.2.2 comm=0x1>0x2 qp=0x12>0x13 mtu=1024 ece: sent "
            "0x0/0x0 received "
            "0x15b3/0x1, standard RoCEv2: vendor named without being asked, ignored; rejected: "
            "refused by the program");
}

TEST(Describe, RejectReasons_HaveWords) {
  EXPECT_STREQ(RejectReasonText(8), "nobody listens on the service");
  EXPECT_STREQ(RejectReasonText(10), "stale connection");
  EXPECT_STREQ(RejectReasonText(28), "refused by the program");
  EXPECT_STREQ(RejectReasonText(35), "vendor option not supported");
  EXPECT_STREQ(RejectReasonText(999), "reserved");
}

}  // namespace
}  // namespace rocegw::cm
