// SPDX-License-Identifier: Apache-2.0
// DCQCN's reaction point: cuts, alpha, the three stages of recovery, pacing.
#include <gtest/gtest.h>

#include "tests/unit/flow/cc_driver.h"

namespace rocegw::testing {
namespace {

class CcDcqcn : public ::testing::Test {
 protected:
  // The window never limits: 10 Gbit/s for a millisecond are 1.25 MB. Nor does the initial window
  // of a new flow.
  CcDcqcn() : cc(flow::CcKind::kDcqcn, 10, 2 << 20) { cc.Set("initial_window", 65535); }
  CcDriver cc;
};

// A new flow with packets of 1000 bytes.
class CcDcqcnStart : public ::testing::Test {
 protected:
  CcDcqcnStart() : cc(flow::CcKind::kDcqcn, 10, 2 << 20) {
    cc.Set("initial_window", 10);
    cc.Start();
  }
  void Round(uint64_t bytes, Duration rtt) {
    for (uint64_t sent = 0; sent < bytes; sent += 1000) cc.Sent(1000);
    cc.Wait(rtt);
    cc.Acked({.acked_bytes = bytes, .in_flight_before = bytes, .rtt = rtt});
  }
  CcDriver cc;
};

TEST_F(CcDcqcnStart, WithoutCnp_TheWindowGrowsUntilThereIsNone) {
  EXPECT_NEAR(static_cast<double>(cc.Gate().bytes), 10'240, 64);
  Round(10'240, Microseconds(20));
  EXPECT_NEAR(static_cast<double>(cc.Gate().bytes), 17'920, 128);
  for (int i = 0; i < 12; ++i) Round(cc.Gate().bytes / 1000 * 1000, Microseconds(20));
  EXPECT_EQ(cc.Gate().bytes, 2u << 20);
}

// 10 KiB in 820 us are 100 Mbit/s; the flow starts at half of that and aims at twice as much.
TEST_F(CcDcqcnStart, FirstCnp_TheRateIsWhatTheWindowLetsThrough) {
  for (int i = 0; i < 10; ++i) cc.Sent(1000);
  cc.Wait(Microseconds(100));
  cc.Cnp();
  EXPECT_LE(cc.Gate().bytes, 10'240u) << "the window holds";
  cc.Wait(Microseconds(100));
  cc.Cnp();
  EXPECT_NEAR(static_cast<double>(cc.Gate().bytes), 10'240, 64) << "others say nothing new yet";
  cc.Acked({.acked_bytes = 1000, .in_flight_before = 10'240, .rtt = Microseconds(200)});
  EXPECT_NEAR(static_cast<double>(cc.Gate().bytes), 10'240, 64) << "of what was sent before it";
  Round(10'240, Microseconds(819));
  EXPECT_NEAR(cc.Rate(), 50, 1);
  // Halfway from 50 to 200 per period, and further from there.
  cc.Wait(Microseconds(300));
  cc.OnDeadline();
  EXPECT_NEAR(cc.Rate(), 127, 4);
  cc.Wait(Milliseconds(2));
  cc.OnDeadline();
  EXPECT_GT(cc.Rate(), 195);
}

// The sender of READ responses gets CNPs and no other feedback.
TEST_F(CcDcqcnStart, AnswersWithoutRoundTrips_AreCutAsEver) {
  cc.Cnp();
  for (int i = 0; i < 11; ++i) cc.Sent(1000);
  cc.Acked({.acked_bytes = 10'240, .in_flight_before = 10'240});
  EXPECT_NEAR(cc.Rate(), 5000, 6);
  EXPECT_EQ(cc.Gate().bytes, 2u << 20);
}

TEST_F(CcDcqcnStart, WithoutRisesByCount_TheStartEndsAllTheSame) {
  cc.Set("rpg_byte_reset", 0);
  cc.Cnp();
  Round(10'240, Microseconds(819));
  EXPECT_NEAR(cc.Rate(), 50, 1);
}

// Bytes in flight are limited to what the rate sends in a round trip plus 100 us, so that a queue
// cannot grow.
TEST_F(CcDcqcnStart, LimitedFlow_ItsWindowFollowsItsRate) {
  cc.Cnp();
  Round(10'240, Microseconds(41));  // 2 Gbit/s
  EXPECT_NEAR(cc.Rate(), 1000, 10);
  EXPECT_NEAR(static_cast<double>(cc.Gate().bytes), 1000e6 * 141e-6 / 8, 300);
  cc.Set("window_time", 0);
  EXPECT_EQ(cc.Gate().bytes, 2u << 20);
}

// Limited by that window, the flow used less than its rate; a cut starts from the rate in use.
TEST_F(CcDcqcnStart, CutOfAFlowThatItsWindowHolds_FromWhatItHad) {
  cc.Cnp();
  Round(10'240, Microseconds(41));
  const uint64_t window = cc.Gate().bytes;
  cc.Acked({.acked_bytes = 1000, .in_flight_before = window, .rtt = Microseconds(1400)});
  EXPECT_NEAR(cc.Rate(), 1000, 10);
  cc.Wait(Microseconds(10));
  cc.Cnp();
  EXPECT_LE(cc.Rate(), 101);
}

TEST_F(CcDcqcn, WithoutCnp_NotPacedAndNoDeadline) {
  cc.Start();
  for (int i = 0; i < 100; ++i) cc.Sent(1000);
  EXPECT_EQ(cc.Gate(0).earliest, TimePoint{});
  EXPECT_EQ(cc.Gate(0).bytes, 2u << 20);
  EXPECT_EQ(cc.Gate(2 << 20).bytes, 0u);
  EXPECT_EQ(cc.Deadline(), kNever);
  EXPECT_EQ(cc.Window(), 2u << 20);
}

TEST_F(CcDcqcn, FirstCnp_HalvesTheLinksRate) {
  cc.Start();
  cc.Cnp();
  // With alpha = 1023/1024 the cut is slightly less than half; min_dec_fac is 50 %.
  EXPECT_NEAR(cc.Rate(), 5000, 6);
  EXPECT_EQ(cc.Gate().earliest, cc.now) << "paced from now on";
}

TEST_F(CcDcqcn, FirstCnp_RateToSet) {
  cc.Set("rate_to_set_on_first_cnp", 700);
  cc.Start();
  cc.Cnp();
  EXPECT_NEAR(cc.Rate(), 700, 1);
}

TEST_F(CcDcqcn, Cuts_NeverMoreThanMinDecFac) {
  cc.Set("rpg_min_dec_fac", 80);
  cc.Start();
  cc.Cnp();
  EXPECT_NEAR(cc.Rate(), 8000, 1);
}

TEST_F(CcDcqcn, Cuts_AtMostOncePerMonitorPeriod) {
  cc.Start();
  cc.Cnp();
  const double rate = cc.Rate();
  cc.Wait(Nanoseconds(3999));
  cc.Cnp();
  EXPECT_EQ(cc.Rate(), rate);
  cc.Wait(Nanoseconds(1));
  cc.Cnp();
  EXPECT_LT(cc.Rate(), rate * 0.52);
}

TEST_F(CcDcqcn, Cuts_StopAtTheLowestRate) {
  cc.Start();
  for (int i = 0; i < 100; ++i) {
    cc.Cnp();
    cc.Wait(Microseconds(5));
  }
  EXPECT_NEAR(cc.Rate(), 1, 0.01);
  // 1000 bytes at 1 Mbit/s take 8 ms.
  cc.Sent(1000);
  EXPECT_GE(cc.Gate().earliest - cc.now, Microseconds(7800));
}

TEST_F(CcDcqcn, Alpha_FadesWithoutCnps) {
  // Without rises in between, only cuts change the rate.
  cc.Set("rpg_time_reset", 1000000);
  cc.Set("rpg_byte_reset", 0);
  cc.Start();
  cc.Cnp();
  const double first = cc.Rate();
  // (1019/1024)^200 = 0.375; the period with the CNP adds 5/1024.
  cc.Wait(Microseconds(200));
  cc.Cnp();
  EXPECT_NEAR(cc.Rate() / first, 1 - 0.377 / 2, 0.004);
  // After a long time alpha is almost 0: a cut takes almost nothing.
  cc.Wait(Milliseconds(20));
  const double second = cc.Rate();
  cc.Cnp();
  EXPECT_GT(cc.Rate(), second * 0.999);
}

TEST_F(CcDcqcn, Alpha_SteadyUnderSteadyCnps) {
  cc.Set("rpg_time_reset", 1000000);
  cc.Set("rpg_byte_reset", 0);
  cc.Start();
  cc.Cnp();
  for (int i = 0; i < 80; ++i) {
    cc.Wait(Microseconds(20));
    cc.Cnp();
  }
  const double before = cc.Rate();
  cc.Wait(Microseconds(20));
  cc.Cnp();
  // alpha = 5/1024 / (1 - (1019/1024)^20) = 5.1 %; the cut takes half of it.
  EXPECT_NEAR(cc.Rate() / before, 1 - 0.0257, 0.002);
}

TEST_F(CcDcqcn, FastRecovery_HalfWayToTheTargetPerPeriod) {
  cc.Set("rpg_threshold", 5);
  cc.Set("rpg_byte_reset", 0);
  cc.Start();
  cc.Cnp();
  const double gap = 10000 - cc.Rate();
  for (int period = 1; period <= 4; ++period) {
    cc.Wait(Microseconds(300));
    cc.OnDeadline();
    EXPECT_NEAR(10000 - cc.Rate(), gap / (1 << period), 2) << period;
  }
}

TEST_F(CcDcqcn, AdditiveIncrease_RaisesTheTarget) {
  cc.Set("rpg_byte_reset", 0);
  cc.Set("rpg_ai_rate", 100);
  cc.Start();
  cc.Cnp();
  cc.Wait(Microseconds(5));
  cc.Cnp();
  // The target is the one before the first cut; a rise in between lets it follow.
  cc.Wait(Microseconds(300));
  cc.OnDeadline();
  cc.Cnp();
  const double target = cc.Rate();
  cc.Wait(Microseconds(300));
  cc.OnDeadline();
  cc.Wait(Microseconds(300));
  cc.OnDeadline();
  EXPECT_GT(cc.Rate(), target);
}

TEST_F(CcDcqcn, Target_FollowsOnlyTheFirstCut) {
  cc.Set("rpg_byte_reset", 0);
  cc.Set("rpg_threshold", 5);
  cc.Start();
  for (int i = 0; i < 5; ++i) {
    cc.Cnp();
    cc.Wait(Microseconds(5));
  }
  const double rate = cc.Rate();
  cc.Wait(Microseconds(300));
  cc.OnDeadline();
  EXPECT_NEAR(cc.Rate(), (10000 + rate) / 2, 3) << "half way back to where it all began";
}

TEST_F(CcDcqcn, ClampTarget_EveryCutLowersIt) {
  cc.Set("rpg_byte_reset", 0);
  cc.Set("rpg_threshold", 5);
  cc.Set("clamp_tgt_rate", 1);
  cc.Start();
  cc.Cnp();
  cc.Wait(Microseconds(5));
  const double before = cc.Rate();
  cc.Cnp();
  const double rate = cc.Rate();
  cc.Wait(Microseconds(300));
  cc.OnDeadline();
  EXPECT_NEAR(cc.Rate(), (before + rate) / 2, 3);
}

TEST_F(CcDcqcn, HyperIncrease_NeedsTimerAndBytes) {
  const auto recovered_after = [](bool bytes) {
    CcDriver fast(flow::CcKind::kDcqcn, 100, 64 << 20);
    fast.Set("rpg_byte_reset", bytes ? 1000 : 0);
    fast.Set("initial_window", 65535);
    fast.Start();
    for (int i = 0; i < 40; ++i) {
      fast.Cnp();
      fast.Wait(Microseconds(5));
      // Occasional rises let the target follow the cuts.
      if (i % 8 == 7) {
        fast.Wait(Microseconds(300));
        fast.OnDeadline();
      }
    }
    int periods = 0;
    while (fast.Gate().earliest.ns != 0 && periods < 100000) {
      fast.Wait(Microseconds(300));
      if (bytes) fast.Sent(64000);
      fast.OnDeadline();
      ++periods;
    }
    return periods;
  };
  EXPECT_LT(recovered_after(true) * 2, recovered_after(false));
}

// With many flows, none sends enough bytes for the byte counter. On a path without a queue, after
// so many periods without a CNP, the flow rises as if it had.
TEST_F(CcDcqcn, QuietPath_HyperIncreaseWithoutTheBytes) {
  const auto rate_after = [](int periods, Duration rtt, uint64_t quiet) {
    CcDriver slow(flow::CcKind::kDcqcn, 10, 2 << 20);
    slow.Set("initial_window", 65535);
    slow.Set("rpg_byte_reset", 0);
    slow.Set("quiet_periods", quiet);
    slow.Set("clamp_tgt_rate", 1);
    slow.Start();
    slow.Acked({.acked_bytes = 1000, .in_flight_before = 1000, .rtt = Microseconds(20)});
    for (int i = 0; i < 40; ++i) {
      slow.Cnp();
      slow.Wait(Microseconds(4));
    }
    const double before = slow.Rate();
    for (int i = 0; i < periods; ++i) {
      slow.Acked({.acked_bytes = 1000, .in_flight_before = 1000, .rtt = rtt});
      slow.Wait(Microseconds(300));
      slow.OnDeadline();
    }
    return slow.Rate() - before;
  };
  const Duration idle = Microseconds(24), queue = Microseconds(60);
  // Additive increase, 5 Mbit/s per period, plus the gain of fast recovery.
  EXPECT_NEAR(rate_after(11, idle, 12), rate_after(11, queue, 12), 1);
  const double slow = rate_after(20, queue, 12);
  EXPECT_GT(rate_after(20, idle, 12), slow + 2000);
  EXPECT_NEAR(rate_after(20, idle, 0), slow, 1) << "never";
}

TEST_F(CcDcqcn, Recovered_NoLongerPacedAndTheNextCnpIsAFirstOne) {
  cc.Start();
  cc.Cnp();
  for (int i = 0; i < 60; ++i) {
    cc.Wait(Microseconds(300));
    cc.OnDeadline();
  }
  EXPECT_EQ(cc.Gate().earliest, TimePoint{});
  EXPECT_EQ(cc.Window(), 2u << 20);
  cc.Cnp();
  EXPECT_NEAR(cc.Rate(), 5000, 6);
}

TEST_F(CcDcqcn, IdleForLong_CatchesUpAtTheNextEvent) {
  cc.Start();
  for (int i = 0; i < 10; ++i) {
    cc.Cnp();
    cc.Wait(Microseconds(5));
  }
  EXPECT_EQ(cc.Deadline(), kNever) << "nobody waits: nothing is to be done";
  cc.Wait(Seconds(3600));
  cc.Sent(1000);
  EXPECT_EQ(cc.Gate().earliest, TimePoint{});
}

TEST_F(CcDcqcn, Pacing_HoldsTheRateOnAverage) {
  cc.Set("rpg_time_reset", 1000000);
  cc.Set("rpg_byte_reset", 0);
  cc.Start();
  cc.Cnp();
  // Polled every 16 us, as by a timer wheel; all due packets leave together.
  uint64_t sent = 0;
  const TimePoint begin = cc.now;
  while (cc.now - begin < Milliseconds(10)) {
    while (cc.Gate().earliest <= cc.now) {
      cc.Sent(1000);
      sent += 1000;
    }
    cc.Wait(Microseconds(16));
  }
  EXPECT_NEAR(static_cast<double>(sent) * 8 / 10000, cc.Rate(), cc.Rate() * 0.01);
}

TEST_F(CcDcqcn, Pacing_LateSenderMakesUpForABurstOnly) {
  cc.Set("rpg_time_reset", 1000000);
  cc.Set("rpg_byte_reset", 0);
  cc.Start();
  cc.Cnp();
  cc.Sent(1000);
  cc.Wait(Milliseconds(50));
  uint64_t sent = 0;
  while (cc.Gate().earliest <= cc.now) {
    cc.Sent(1000);
    sent += 1000;
  }
  // 128 us at 5 Gbit/s are 80000 bytes, and one packet.
  EXPECT_GE(sent, 79000u);
  EXPECT_LE(sent, 82000u);
}

TEST_F(CcDcqcn, LowRate_AsksForARiseBeforeThePacketIsDue) {
  cc.Start();
  for (int i = 0; i < 100; ++i) {
    cc.Cnp();
    cc.Wait(Microseconds(5));
  }
  cc.Sent(1000);
  const TimePoint due = cc.Gate().earliest;
  ASSERT_LT(cc.Deadline(), due);
  cc.now = cc.Deadline();
  cc.OnDeadline();
  EXPECT_LT(cc.Gate().earliest, due) << "the rate has risen, so the packet is due sooner";
  EXPECT_GT(cc.Deadline(), cc.now);
}

TEST_F(CcDcqcn, TakeOver_RateFromWindowAndRoundTrip) {
  cc.Start();
  // 125000 bytes in 200 us are 5 Gbit/s.
  cc.TakeOver(125000, Microseconds(200));
  EXPECT_NEAR(cc.Rate(), 5000, 1);
  cc.Start();
  cc.TakeOver(10 << 20, Microseconds(200));
  EXPECT_EQ(cc.Gate().earliest, TimePoint{}) << "more than the link carries";
  cc.TakeOver(125000, Duration{});
  EXPECT_EQ(cc.Gate().earliest, TimePoint{}) << "no round trip, no rate";
}

TEST_F(CcDcqcn, LinkOfUnknownSpeed_IsTakenForAFastOne) {
  cc.profile.link_bits_per_second = 0;
  cc.config.window_bytes = 1u << 30;
  cc.Start();
  cc.Cnp();
  EXPECT_NEAR(cc.Rate(), 50000, 60);
  cc.Set("rpg_max_rate", 2000);
  cc.Start();
  cc.Cnp();
  EXPECT_NEAR(cc.Rate(), 1000, 2);
}

}  // namespace
}  // namespace rocegw::testing
