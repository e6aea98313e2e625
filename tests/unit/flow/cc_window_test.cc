// SPDX-License-Identifier: Apache-2.0
// Window algorithms one by one: DCTCP, C-AQM, Swift.
#include <gtest/gtest.h>

#include "gateway/wire/congestion_hint.h"
#include "tests/unit/flow/cc_driver.h"

namespace rocegw::testing {
namespace {

using flow::CcKind;

constexpr uint64_t kPacket = 1000;

// Runs one round trip: the whole window is acknowledged, packet by packet.
void Round(CcDriver& cc, Duration rtt, double marked_share, uint8_t hint = 0) {
  const uint64_t window = cc.Window();
  const uint64_t packets = std::max<uint64_t>(1, window / kPacket);
  cc.Wait(rtt);
  double owed = 0;
  for (uint64_t i = 0; i < packets; ++i) {
    owed += marked_share;
    const bool marked = owed >= 1;
    if (marked) owed -= 1;
    cc.Acked({.acked_bytes = kPacket,
              .marked_bytes = marked ? kPacket : 0,
              .in_flight_before = std::max(cc.Window(), kPacket),
              .rtt = rtt,
              .hint = hint});
  }
}

TEST(CcDctcp, SlowStart_DoublesUntilTheFirstMark) {
  CcDriver cc(CcKind::kDctcp);
  cc.Set("initial_window", 10);
  cc.Start();
  EXPECT_EQ(cc.Window(), 10 * kPacket);
  Round(cc, Microseconds(50), 0);
  EXPECT_EQ(cc.Window(), 20 * kPacket);
  Round(cc, Microseconds(50), 0);
  EXPECT_EQ(cc.Window(), 40 * kPacket);
  Round(cc, Microseconds(50), 1);
  EXPECT_NEAR(static_cast<double>(cc.Window()), 20 * kPacket, 4 * kPacket) << "alpha is 1 at first";
  // First the rest of the round with the marks.
  Round(cc, Microseconds(50), 0);
  Round(cc, Microseconds(50), 0);
  const uint64_t window = cc.Window();
  Round(cc, Microseconds(50), 0);
  Round(cc, Microseconds(50), 0);
  EXPECT_NEAR(static_cast<double>(cc.Window()), static_cast<double>(window + 2 * kPacket), 300);
}

TEST(CcDctcp, CutOncePerRound_ByHalfOfAlpha) {
  CcDriver cc(CcKind::kDctcp);
  cc.Set("initial_window", 100);
  cc.Start();
  // alpha converges to the share of marks.
  double before = 0;
  for (int i = 0; i < 200; ++i) {
    cc.TakeOver(100 * kPacket, Microseconds(50));
    before = static_cast<double>(cc.Window());
    Round(cc, Microseconds(50), 0.2);
  }
  EXPECT_NEAR(static_cast<double>(cc.Window()) / before, 0.9, 0.02);
}

TEST(CcDctcp, Loss_HalvesOncePerRound) {
  CcDriver cc(CcKind::kDctcp);
  cc.Set("initial_window", 100);
  cc.Start();
  cc.Loss();
  cc.Loss();
  EXPECT_EQ(cc.Window(), 50 * kPacket);
  Round(cc, Microseconds(50), 0);
  Round(cc, Microseconds(50), 0);
  cc.Loss();
  EXPECT_LT(cc.Window(), 30 * kPacket);
}

TEST(CcDctcp, WindowNotUsedUp_DoesNotGrow) {
  CcDriver cc(CcKind::kDctcp);
  cc.Start();
  const uint64_t window = cc.Window();
  for (int i = 0; i < 100; ++i)
    cc.Acked({.acked_bytes = kPacket, .in_flight_before = 2 * kPacket, .rtt = Microseconds(9)});
  EXPECT_EQ(cc.Window(), window);
}

TEST(CcDctcp, EverythingMarked_OnePacketStays) {
  CcDriver cc(CcKind::kDctcp);
  cc.Start();
  for (int i = 0; i < 100; ++i) Round(cc, Microseconds(50), 1);
  EXPECT_EQ(cc.Window(), kPacket);
  EXPECT_EQ(cc.Gate(0).bytes, kPacket);
}

TEST(CcDctcp, Cnp_CountsAsAMark) {
  CcDriver cc(CcKind::kDctcp);
  cc.Start();
  cc.Cnp();
  const uint64_t window = cc.Window();
  Round(cc, Microseconds(50), 0);
  EXPECT_LT(cc.Window(), window);
}

uint8_t Stamp(uint32_t level) { return wire::HintOfLevel(static_cast<uint8_t>(level), true); }

TEST(CcCaqm, IdlePath_DoublesUntilTheFirstLevel) {
  CcDriver cc(CcKind::kCaqm);
  cc.Set("initial_window", 8);
  cc.Start();
  Round(cc, Microseconds(50), 0, Stamp(1));
  EXPECT_EQ(cc.Window(), 16 * kPacket);
  Round(cc, Microseconds(50), 0, Stamp(10));
  const uint64_t window = cc.Window();
  Round(cc, Microseconds(50), 0, Stamp(1));
  EXPECT_GT(cc.Window(), window);
  EXPECT_LT(cc.Window(), window * 3 / 2) << "no doubling any more";
}

TEST(CcCaqm, FullPath_TakesBetaPerRoundTrip) {
  CcDriver cc(CcKind::kCaqm);
  cc.Set("initial_window", 100);
  cc.Start();
  Round(cc, Microseconds(50), 0, Stamp(1));
  cc.TakeOver(200 * kPacket, Microseconds(50));
  Round(cc, Microseconds(50), 0, Stamp(63));
  // Packet by packet; each takes beta of its own share.
  EXPECT_NEAR(static_cast<double>(cc.Window()), 100 * kPacket, 2 * kPacket);
}

TEST(CcCaqm, SameLevel_WindowsMeet) {
  CcDriver small(CcKind::kCaqm);
  CcDriver large(CcKind::kCaqm);
  for (CcDriver* cc : {&small, &large}) {
    cc->Start();
    Round(*cc, Microseconds(50), 0, Stamp(1));
  }
  small.TakeOver(10 * kPacket, Microseconds(50));
  large.TakeOver(300 * kPacket, Microseconds(50));
  for (int i = 0; i < 120; ++i) {
    Round(small, Microseconds(50), 0, Stamp(12));
    Round(large, Microseconds(50), 0, Stamp(12));
  }
  const double ratio = static_cast<double>(large.Window()) / static_cast<double>(small.Window());
  EXPECT_NEAR(ratio, 1, 0.1);
}

TEST(CcCaqm, IncreaseNotGranted_DoesNotGrow) {
  CcDriver cc(CcKind::kCaqm);
  cc.Start();
  Round(cc, Microseconds(50), 0, Stamp(1));
  const uint64_t window = cc.Window();
  Round(cc, Microseconds(50), 0, wire::HintOfLevel(1, false));
  EXPECT_EQ(cc.Window(), window);
}

TEST(CcCaqm, PartOfAPacket_IsTheNextRounds) {
  CcDriver cc(CcKind::kCaqm);
  cc.Start();
  cc.TakeOver(3300, Microseconds(50));
  uint64_t packets = 0;
  for (int i = 0; i < 100; ++i) {
    Round(cc, Microseconds(50), 0, wire::HintOfLevel(1, false));
    EXPECT_EQ(cc.Window(), 3300u);
    packets += cc.Gate().bytes / kPacket;
    EXPECT_LT(cc.Gate(4 * kPacket).bytes, kPacket);
  }
  EXPECT_NEAR(static_cast<double>(packets), 330, 1);
}

TEST(CcCaqm, OnlyMarks_CutsBySmoothedShareOncePerRound) {
  CcDriver cc(CcKind::kCaqm);
  cc.Start();
  for (int i = 0; i < 200; ++i) {
    cc.TakeOver(100 * kPacket, Microseconds(50));
    Round(cc, Microseconds(50), 0.1);
  }
  // Share 0.1, beta one half; the growth before the round's first mark is small.
  EXPECT_NEAR(static_cast<double>(cc.Window()), 95.5 * kPacket, 3 * kPacket);
}

TEST(CcCaqm, Loss_CutsOncePerRound) {
  CcDriver cc(CcKind::kCaqm);
  cc.Set("initial_window", 100);
  cc.Start();
  cc.Loss();
  cc.Loss();
  cc.Cnp();
  EXPECT_EQ(cc.Window(), 50 * kPacket);
}

class CcSwift : public ::testing::Test {
 protected:
  CcSwift() : cc(CcKind::kSwift) {
    cc.Set("flow_scaling", 0);
    cc.Set("target_delay", 100);
  }
  CcDriver cc;
};

TEST_F(CcSwift, BelowTheTarget_APacketPerRoundTrip) {
  cc.Start();
  cc.TakeOver(50 * kPacket, Microseconds(50));
  for (int i = 1; i <= 10; ++i) {
    Round(cc, Microseconds(50), 0);
    EXPECT_NEAR(static_cast<double>(cc.Window()), (50 + i) * kPacket, kPacket) << i;
  }
}

TEST_F(CcSwift, NewFlow_DoublesUntilTheTarget) {
  cc.Set("initial_window", 8);
  cc.Start();
  Round(cc, Microseconds(50), 0);
  EXPECT_EQ(cc.Window(), 16 * kPacket);
  Round(cc, Microseconds(101), 0);
  const uint64_t window = cc.Window();
  Round(cc, Microseconds(50), 0);
  EXPECT_NEAR(static_cast<double>(cc.Window()), static_cast<double>(window + kPacket),
              kPacket / 2.0);
}

TEST_F(CcSwift, AboveTheTarget_ShrinksByTheExcessOncePerRoundTrip) {
  cc.Start();
  cc.TakeOver(100 * kPacket, Microseconds(100));
  cc.Wait(Microseconds(200));
  // A quarter of the delay is excess; beta is 80 %.
  const flow::CcFeedback late{
      .acked_bytes = kPacket, .in_flight_before = 100 * kPacket, .rtt = Nanoseconds(133333)};
  cc.Acked(late);
  EXPECT_NEAR(static_cast<double>(cc.Window()), 80 * kPacket, kPacket);
  cc.Acked(late);
  EXPECT_NEAR(static_cast<double>(cc.Window()), 80 * kPacket, kPacket) << "once per round trip";
  cc.Wait(Microseconds(200));
  cc.Acked(late);
  EXPECT_NEAR(static_cast<double>(cc.Window()), 64 * kPacket, kPacket);
}

TEST_F(CcSwift, FarAboveTheTarget_NotMoreThanMaxDecrease) {
  cc.Start();
  cc.TakeOver(100 * kPacket, Microseconds(100));
  cc.Wait(Milliseconds(20));
  cc.Acked({.acked_bytes = kPacket, .in_flight_before = 1, .rtt = Milliseconds(10)});
  EXPECT_EQ(cc.Window(), 50 * kPacket);
}

TEST_F(CcSwift, SmallWindow_HasALaterTarget) {
  cc.Set("flow_scaling", 100);
  cc.Start();
  cc.TakeOver(100 * kPacket, Microseconds(120));
  Round(cc, Microseconds(120), 0);
  EXPECT_LT(cc.Window(), 100 * kPacket) << "a large window has the plain target";
  cc.TakeOver(kPacket / 2, Microseconds(120));
  const uint64_t window = cc.Window();
  Round(cc, Microseconds(120), 0);
  EXPECT_GT(cc.Window(), window);
}

TEST_F(CcSwift, BelowOnePacket_Paced) {
  cc.Start();
  cc.TakeOver(kPacket / 4, Microseconds(80));
  EXPECT_EQ(cc.Gate(0).bytes, kPacket) << "one at a time";
  EXPECT_EQ(cc.Gate(kPacket).bytes, 0u);
  cc.Sent(kPacket);
  EXPECT_EQ(cc.Gate().earliest, cc.now + Microseconds(320)) << "a packet in four round trips";
  // A larger window makes it due sooner.
  const TimePoint due = cc.Gate().earliest;
  cc.Wait(Microseconds(80));
  cc.Acked({.acked_bytes = kPacket, .in_flight_before = kPacket, .rtt = Microseconds(80)});
  EXPECT_LT(cc.Gate().earliest, due);
}

// After an incast, the queue is drained long before a packet that was delayed by several of its
// round trips is due.
TEST_F(CcSwift, BelowOnePacket_ALongQueueIsWaitedForNoLongerThanTheTarget) {
  cc.Start();
  cc.TakeOver(kPacket / 2, Milliseconds(10));
  cc.Sent(kPacket);
  EXPECT_LE(cc.Gate().earliest, cc.now + Microseconds(400)) << "two targets, scaled";
  EXPECT_GE(cc.Gate().earliest, cc.now + Microseconds(200));
}

TEST_F(CcSwift, LongPath_LearnsThatItIsNotTheQueue) {
  cc.Start();
  for (int i = 0; i < 100; ++i) Round(cc, Milliseconds(1), 0);
  // The window shrank, the delay stayed the same, and the window recovered.
  EXPECT_GT(cc.Window(), 20 * kPacket);
}

TEST_F(CcSwift, Loss_CutsOncePerRoundTrip) {
  cc.Start();
  cc.TakeOver(100 * kPacket, Microseconds(100));
  cc.Wait(Microseconds(200));
  cc.Loss();
  cc.Loss();
  EXPECT_EQ(cc.Window(), 50 * kPacket);
}

TEST(CcTakeOver, EveryPair_KeepsTheOperatingPoint) {
  constexpr uint64_t kWindow = 62000;
  const Duration rtt = Microseconds(100);
  for (size_t from = 1; from < flow::kCcKinds; ++from) {
    for (size_t to = 1; to < flow::kCcKinds; ++to) {
      CcDriver a(static_cast<CcKind>(from));
      a.Start();
      a.TakeOver(kWindow, rtt);
      CcDriver b(static_cast<CcKind>(to));
      b.Start();
      b.TakeOver(a.Window(rtt), rtt);
      EXPECT_NEAR(static_cast<double>(b.Window(rtt)), kWindow, kWindow / 100.0)
          << a.algorithm().name << " to " << b.algorithm().name;
    }
  }
}

}  // namespace
}  // namespace rocegw::testing
