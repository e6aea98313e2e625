// SPDX-License-Identifier: Apache-2.0
// Choice of an algorithm by observed signs of congestion.
#include "gateway/flow/cc_selector.h"

#include <gtest/gtest.h>

namespace rocegw::flow {
namespace {

class CcSelectorTest : public ::testing::Test {
 protected:
  CcSelectorTest() {
    policy.remember = Seconds(1);
    policy.Add({CcSign::kCnps, 1, CcKind::kDcqcn});
    policy.Add({CcSign::kHints, 500, CcKind::kCaqm});
    policy.Add({CcSign::kMarks, 1, CcKind::kDctcp});
    policy.Add({CcSign::kUnmarkedLoss, 1, CcKind::kSwift});
    policy.Add({CcSign::kDelay, 300, CcKind::kSwift});
    policy.Add({CcSign::kAlways, 0, CcKind::kStatic});
  }
  // Evaluates `count` times, each with the counts of one interval.
  CcKind Looks(CcSelector& selector, int count, const CcCounts& each) {
    for (int i = 0; i < count; ++i) {
      now = now + policy.interval;
      counts.acked_bytes += each.acked_bytes;
      counts.marked_bytes += each.marked_bytes;
      counts.hinted_bytes += each.hinted_bytes;
      counts.cnps += each.cnps;
      counts.losses += each.losses;
      counts.rtt = each.rtt;
      counts.shortest = each.shortest;
      selector.Look(counts, now);
    }
    return selector.current();
  }

  CcPolicy policy;
  CcCounts counts;
  TimePoint now{1'000'000'000};
};

TEST_F(CcSelectorTest, NoSigns_WhatAlwaysHolds) {
  CcSelector selector(policy, CcKind::kSwift, now);
  EXPECT_EQ(selector.current(), CcKind::kStatic);
  EXPECT_EQ(Looks(selector, 100, {.acked_bytes = 1000}), CcKind::kStatic);
  EXPECT_EQ(selector.switches(), 0u);
  ASSERT_NE(selector.reason(), nullptr);
  EXPECT_EQ(selector.reason()->sign, CcSign::kAlways);
}

TEST_F(CcSelectorTest, NoRules_WhatTheCallerSays) {
  CcSelector selector(CcPolicy{}, CcKind::kSwift, now);
  EXPECT_EQ(Looks(selector, 10, {.cnps = 5}), CcKind::kSwift);
  EXPECT_EQ(selector.reason(), nullptr);
}

TEST_F(CcSelectorTest, EachSign_LeadsToItsAlgorithm) {
  const struct {
    CcCounts each;
    CcKind kind;
  } cases[] = {
      {{.acked_bytes = 1000, .cnps = 1}, CcKind::kDcqcn},
      {{.acked_bytes = 1000, .hinted_bytes = 500}, CcKind::kCaqm},
      {{.acked_bytes = 1000, .hinted_bytes = 499}, CcKind::kStatic},
      {{.acked_bytes = 1000, .marked_bytes = 1}, CcKind::kDctcp},
      {{.acked_bytes = 10000, .marked_bytes = 9}, CcKind::kStatic},
      {{.acked_bytes = 1000, .losses = 1}, CcKind::kSwift},
      {{.acked_bytes = 100000, .marked_bytes = 1, .losses = 5}, CcKind::kStatic},
      {{.acked_bytes = 1000, .rtt = Microseconds(300), .shortest = Microseconds(100)},
       CcKind::kSwift},
      {{.acked_bytes = 1000, .rtt = Microseconds(299), .shortest = Microseconds(100)},
       CcKind::kStatic},
      {{.rtt = Microseconds(900), .shortest = Microseconds(100)}, CcKind::kStatic},
  };
  for (const auto& c : cases) {
    counts = {};
    CcSelector selector(policy, CcKind::kStatic, now);
    EXPECT_EQ(Looks(selector, 3, c.each), c.kind) << static_cast<int>(c.kind);
  }
}

TEST_F(CcSelectorTest, EarlierRuleWins) {
  CcSelector selector(policy, CcKind::kStatic, now);
  EXPECT_EQ(
      Looks(selector, 3, {.acked_bytes = 10, .marked_bytes = 5, .hinted_bytes = 10, .cnps = 1}),
      CcKind::kDcqcn);
}

TEST_F(CcSelectorTest, OneLook_IsNotEnough) {
  CcSelector selector(policy, CcKind::kStatic, now);
  policy.remember = Duration{};
  CcSelector forgetful(policy, CcKind::kStatic, now);
  EXPECT_EQ(Looks(forgetful, 1, {.acked_bytes = 1000, .cnps = 1}), CcKind::kStatic);
  EXPECT_EQ(Looks(forgetful, 10, {.acked_bytes = 1000}), CcKind::kStatic);
}

TEST_F(CcSelectorTest, GapsBetweenSigns_DoNotSwitchBack) {
  CcSelector selector(policy, CcKind::kStatic, now);
  ASSERT_EQ(Looks(selector, 3, {.acked_bytes = 1000, .cnps = 1}), CcKind::kDcqcn);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(Looks(selector, 90, {.acked_bytes = 1000}), CcKind::kDcqcn);
    ASSERT_EQ(Looks(selector, 1, {.acked_bytes = 1000, .cnps = 1}), CcKind::kDcqcn);
  }
  EXPECT_EQ(selector.switches(), 1u);
  EXPECT_EQ(Looks(selector, 110, {.acked_bytes = 1000}), CcKind::kStatic) << "for good";
}

TEST_F(CcSelectorTest, Switches_AreFarApart) {
  policy.remember = Duration{};
  policy.confirm = 1;
  CcSelector selector(policy, CcKind::kStatic, now);
  const TimePoint begin = now;
  for (int i = 0; i < 500; ++i) {
    Looks(selector, 1, {.acked_bytes = 1000, .cnps = i % 2 == 0 ? 1u : 0u});
  }
  EXPECT_LE(selector.switches(), static_cast<uint32_t>((now - begin).ns / policy.dwell.ns) + 1);
  EXPECT_GE(selector.switches(), 2u);
}

TEST_F(CcSelectorTest, LooksTooSoon_ChangeNothing) {
  CcSelector selector(policy, CcKind::kStatic, now);
  for (int i = 0; i < 1000; ++i) {
    counts.cnps += 1;
    now = now + Microseconds(9);
    EXPECT_EQ(selector.Look(counts, now), CcKind::kStatic);
  }
}

TEST(CcSign, Names) {
  for (CcSign sign : {CcSign::kAlways, CcSign::kCnps, CcSign::kMarks, CcSign::kHints,
                      CcSign::kDelay, CcSign::kUnmarkedLoss}) {
    CcSign found = CcSign::kAlways;
    EXPECT_TRUE(FindCcSign(NameOf(sign), found));
    EXPECT_EQ(found, sign);
  }
  CcSign found = CcSign::kDelay;
  EXPECT_FALSE(FindCcSign("", found));
  EXPECT_EQ(found, CcSign::kDelay);
}

}  // namespace
}  // namespace rocegw::flow
