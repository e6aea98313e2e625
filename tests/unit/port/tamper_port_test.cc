// SPDX-License-Identifier: Apache-2.0
#include "tests/support/network/tamper_port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "gateway/port/pair_port.h"
#include "gateway/wire/crc/icrc.h"
#include "tests/support/network/port_fixture.h"

namespace rocegw::testing {
namespace {

constexpr Qpn kQpn{0x12};

class TamperPortTest : public ::testing::Test {
 protected:
  void Send(uint32_t first, uint32_t last) {
    for (uint32_t psn = first; psn <= last; ++psn) {
      ASSERT_TRUE(SendTestPacket(link_.port(0), TestPath(), kQpn, psn, 32));
    }
  }
  std::vector<uint32_t> Got() {
    std::vector<uint32_t> psns;
    for (const Received& received : ReceiveAll(port_)) psns.push_back(PsnOf(received.bytes));
    return psns;
  }

  port::PairLink link_;
  TamperScript script_{42};
  TamperPort port_{link_.port(1), script_, 1};
};

using Psns = std::vector<uint32_t>;

TEST_F(TamperPortTest, WithoutRules_PassesEverythingUnchanged) {
  Send(0, 99);
  const auto got = ReceiveAll(port_);
  ASSERT_EQ(got.size(), 100U);
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(PsnOf(got[i].bytes), i);
    EXPECT_TRUE(IsTestPacket(got[i].bytes));
  }
}

TEST_F(TamperPortTest, Drop_TakesThePsnRangeOnce) {
  const size_t rule = script_.Add({.first_psn = 3, .last_psn = 4});
  Send(0, 6);
  EXPECT_EQ(Got(), (Psns{0, 1, 2, 5, 6}));
  EXPECT_EQ(script_.rule(rule).acted, 2U);
  EXPECT_EQ(script_.dropped(), 2U);
}

TEST_F(TamperPortTest, PsnRange_GoesAcrossTheWrap) {
  script_.Add({.first_psn = 0xFFFFFF, .last_psn = 0});
  Send(0xFFFFFE, 0xFFFFFF);
  Send(0, 1);
  EXPECT_EQ(Got(), (Psns{0xFFFFFE, 1}));
}

TEST_F(TamperPortTest, NthMatch_SkipsAndLimits) {
  const size_t rule = script_.Add({.opcode = 0x04, .skip = 2, .times = 1});
  Send(0, 4);
  EXPECT_EQ(Got(), (Psns{0, 1, 3, 4}));
  EXPECT_EQ(script_.rule(rule).matched, 5U);
  EXPECT_EQ(script_.rule(rule).acted, 1U);
}

TEST_F(TamperPortTest, OtherOpcodeQpnOrDirection_DoesNotMatch) {
  script_.Add({.opcode = 0x11});
  script_.Add({.destination_qpn = 0x13});
  script_.Add({.direction = 0});
  Send(0, 1);
  EXPECT_EQ(Got(), (Psns{0, 1}));
  EXPECT_EQ(script_.rule(2).matched, 0U);
}

TEST_F(TamperPortTest, Delay_ComesAfterNLaterPackets) {
  script_.Add({.action = TamperAction::kDelay, .first_psn = 1, .last_psn = 1, .count = 2});
  Send(0, 2);
  EXPECT_EQ(Got(), (Psns{0, 2}));
  EXPECT_EQ(port_.held(), 1U);
  Send(3, 4);
  EXPECT_EQ(Got(), (Psns{3, 1, 4}));
}

TEST_F(TamperPortTest, Delay_CanBeReleased) {
  script_.Add({.action = TamperAction::kDelay, .count = 100});
  Send(0, 2);
  EXPECT_EQ(Got(), Psns{});
  port_.ReleaseHeld();
  EXPECT_EQ(Got(), (Psns{0, 1, 2}));
}

TEST_F(TamperPortTest, Duplicate_IsTheSamePacket) {
  script_.Add({.action = TamperAction::kDuplicate, .first_psn = 1, .last_psn = 1, .count = 2});
  Send(0, 2);
  const auto got = ReceiveAll(port_);
  ASSERT_EQ(got.size(), 5U);
  EXPECT_EQ(got[1].bytes, got[2].bytes);
  EXPECT_EQ(got[1].bytes, got[3].bytes);
  EXPECT_EQ(got[1].meta.ip_id, got[3].meta.ip_id);
}

TEST_F(TamperPortTest, Corrupt_BreaksTheIcrc) {
  script_.Add({.action = TamperAction::kCorrupt, .first_psn = 1, .last_psn = 1, .bit = 100});
  Send(0, 1);
  const auto got = ReceiveAll(port_);
  ASSERT_EQ(got.size(), 2U);
  uint16_t id = 0;
  EXPECT_TRUE(wire::VerifyIcrc(got[0].meta, got[0].bytes, &id));
  EXPECT_FALSE(wire::VerifyIcrc(got[1].meta, got[1].bytes, &id));
}

TEST_F(TamperPortTest, MarkCe_KeepsTheIcrc) {
  script_.Add({.action = TamperAction::kMarkCe});
  Send(0, 0);
  const auto got = ReceiveAll(port_);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].meta.traffic_class, 0x6B);
  uint16_t id = 0;
  EXPECT_TRUE(wire::VerifyIcrc(got[0].meta, got[0].bytes, &id));
}

TEST_F(TamperPortTest, Reorder_KeepsTheSetAndNotTheOrder) {
  script_.Add({.action = TamperAction::kReorder, .count = 5});
  Send(0, 3);
  EXPECT_EQ(Got(), Psns{}) << "held until there are five";
  Send(4, 6);
  Psns psns = Got();
  ASSERT_EQ(psns.size(), 7U);
  EXPECT_NE(psns, (Psns{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ((Psns{psns[5], psns[6]}), (Psns{5, 6}));
  std::sort(psns.begin(), psns.end());
  EXPECT_EQ(psns, (Psns{0, 1, 2, 3, 4, 5, 6}));
}

TEST_F(TamperPortTest, Probabilities_AreSeededAndCounted) {
  script_.Set({.drop = 0.1, .delay = 0.1, .duplicate = 0.1, .corrupt = 0.1, .mark_ce = 0.1});
  Psns first;
  for (uint32_t i = 0; i < 10; ++i) {
    Send(i * 100, i * 100 + 99);
    for (const uint32_t psn : Got()) first.push_back(psn);
  }
  for (const size_t count : {script_.dropped(), script_.delayed(), script_.duplicated(),
                             script_.corrupted(), script_.marked()}) {
    EXPECT_GT(count, 40U);
    EXPECT_LT(count, 160U);
  }
  EXPECT_EQ(first.size() + port_.held(), 1000 - script_.dropped() + script_.duplicated());

  port::PairLink other_link;
  TamperScript other_script(42);
  TamperPort other(other_link.port(1), other_script, 1);
  other_script.Set({.drop = 0.1, .delay = 0.1, .duplicate = 0.1, .corrupt = 0.1, .mark_ce = 0.1});
  Psns second;
  for (uint32_t psn = 0; psn < 1000; ++psn) {
    ASSERT_TRUE(SendTestPacket(other_link.port(0), TestPath(), kQpn, psn, 32));
    for (const auto& received : ReceiveAll(other)) second.push_back(PsnOf(received.bytes));
  }
  EXPECT_EQ(first, second);
}

TEST_F(TamperPortTest, Calm_EndsRulesAndProbabilities) {
  script_.Add({});
  script_.Set({.drop = 1});
  Send(0, 3);
  EXPECT_EQ(Got(), Psns{});
  script_.Calm();
  Send(4, 7);
  EXPECT_EQ(Got(), (Psns{4, 5, 6, 7}));
}

}  // namespace
}  // namespace rocegw::testing
