// SPDX-License-Identifier: Apache-2.0
// Receiving half of selective repeat, rule by rule, and the pool of both halves.
#include "gateway/flow/receive_window.h"

#include <gtest/gtest.h>

#include <vector>

namespace rocegw::flow {
namespace {

constexpr TimePoint kReceiveStart{1'000'000'000};
using Words = std::vector<uint32_t>;

class ReceiveWindowTest : public ::testing::Test {
 protected:
  ReceiveWindowTest() { window.Start(Psn(100), 1000); }
  Admission Admit(uint32_t psn, bool ack_wanted = false) {
    return window.Admit(pool, Psn(psn), now, ack_wanted);
  }
  Words Bitmap(size_t most = 128) {
    Words words(most, 0xEEEEEEEE);
    words.resize(window.FillBitmap(words));
    return words;
  }

  LedgerPool pool;
  ReceiveWindow window;
  TimePoint now = kReceiveStart;
};

TEST_F(ReceiveWindowTest, InOrder_NeedsNoMemory) {
  for (uint32_t psn = 100; psn < 5000; ++psn) EXPECT_EQ(Admit(psn), Admission::kNew);
  EXPECT_EQ(window.next(), Psn(5000));
  EXPECT_EQ(window.holes(), 0u);
  EXPECT_EQ(pool.bytes_used(), 0u);
  EXPECT_TRUE(Bitmap().empty());
}

TEST_F(ReceiveWindowTest, Hole_HoldsABitmapUntilItIsFilled) {
  Admit(100);
  Admit(102);
  Admit(105);
  EXPECT_EQ(window.next(), Psn(101));
  EXPECT_EQ(window.holes(), 3u);
  EXPECT_EQ(pool.bytes_used(), sizeof(LedgerPage));
  EXPECT_EQ(Bitmap(), Words{0b1001});
  Admit(101);
  EXPECT_EQ(window.next(), Psn(103));
  EXPECT_EQ(window.holes(), 2u);
  EXPECT_EQ(Bitmap(), Words{0b10});
  Admit(103);
  Admit(104);
  EXPECT_EQ(window.next(), Psn(106));
  EXPECT_EQ(window.holes(), 0u);
  EXPECT_EQ(pool.bytes_used(), 0u);
}

TEST_F(ReceiveWindowTest, Duplicates_AreTold) {
  Admit(100);
  Admit(102);
  EXPECT_EQ(Admit(100), Admission::kDuplicate);
  EXPECT_EQ(Admit(102), Admission::kDuplicate);
  EXPECT_EQ(Admit(99), Admission::kDuplicate);
  EXPECT_EQ(window.duplicates(), 3);
  EXPECT_EQ(Admit(101), Admission::kNew);
  EXPECT_EQ(Admit(102), Admission::kDuplicate);
  EXPECT_EQ(window.next(), Psn(103));
}

TEST_F(ReceiveWindowTest, BeyondTheWindow_IsNotTaken) {
  EXPECT_EQ(Admit(1100), Admission::kBeyond);
  EXPECT_EQ(Admit(1099), Admission::kNew);
  EXPECT_EQ(Admit(100 + kPsnWindow - 1), Admission::kBeyond);
  EXPECT_EQ(Admit(100 + kPsnWindow), Admission::kDuplicate);
  EXPECT_EQ(window.next(), Psn(100));
  EXPECT_EQ(window.room(), 1000u);
  window.SetWindow(10);
  EXPECT_EQ(Admit(110), Admission::kBeyond);
  EXPECT_EQ(Admit(1099), Admission::kDuplicate) << "what has arrived stays";
  EXPECT_EQ(window.room(), 10u);
}

TEST_F(ReceiveWindowTest, Check_ChangesNothing) {
  EXPECT_EQ(window.Check(Psn(100)), Admission::kNew);
  EXPECT_EQ(window.Check(Psn(105)), Admission::kNew);
  EXPECT_EQ(window.Check(Psn(99)), Admission::kDuplicate);
  EXPECT_EQ(window.Check(Psn(1100)), Admission::kBeyond);
  EXPECT_EQ(window.next(), Psn(100));
  EXPECT_EQ(pool.bytes_used(), 0u);
  EXPECT_FALSE(window.ack_due());
}

TEST_F(ReceiveWindowTest, WholeWindow_FitsTheBitmap) {
  for (const uint32_t first : {0u, 77u, 4095u, kPsnMask - 100}) {
    window.Start(Psn(first), 1 << 20);
    EXPECT_EQ(window.room(), kMaxFlowPackets);
    for (uint32_t i = 1; i < 4096; ++i) {
      ASSERT_EQ(window.Admit(pool, Psn(first + i), now), Admission::kNew);
    }
    EXPECT_EQ(window.Admit(pool, Psn(first + 4096), now), Admission::kBeyond);
    EXPECT_EQ(window.holes(), 1u);
    Words expected(128, 0xFFFFFFFF);
    expected.back() = 0x7FFFFFFF;
    EXPECT_EQ(Bitmap(), expected);
    EXPECT_EQ(Bitmap(5), Words(5, 0xFFFFFFFF));
    EXPECT_EQ(window.Admit(pool, Psn(first), now), Admission::kNew);
    EXPECT_EQ(window.next(), Psn(first + 4096));
    EXPECT_EQ(pool.bytes_used(), 0u);
  }
}

TEST_F(ReceiveWindowTest, Stop_GivesTheBitmapBack) {
  Admit(105);
  window.Stop();
  EXPECT_EQ(pool.bytes_used(), 0u);
}

TEST_F(ReceiveWindowTest, InOrderPackets_AreAcknowledgedTogether) {
  for (uint32_t i = 0; i + 1 < ReceiveWindow::kAckEvery; ++i) {
    Admit(100 + i);
    EXPECT_FALSE(window.ack_due());
    EXPECT_EQ(window.ack_deadline(now), now + ReceiveWindow::kAckDelay);
  }
  Admit(100 + ReceiveWindow::kAckEvery - 1);
  EXPECT_TRUE(window.ack_due());
  EXPECT_EQ(window.ack_deadline(now), now);
  window.OnAckSent();
  EXPECT_FALSE(window.ack_due());
  EXPECT_EQ(window.ack_deadline(now), kNever);
}

TEST_F(ReceiveWindowTest, AckDeadline_RunsFromTheNewestArrival) {
  Admit(100);
  now = now + Microseconds(32);
  EXPECT_EQ(window.ack_deadline(now), now + Microseconds(18));
  now = now + Microseconds(80);
  EXPECT_EQ(window.ack_deadline(now), now);
}

TEST_F(ReceiveWindowTest, WhatCannotWait_IsAcknowledgedNow) {
  const auto due = [&] {
    const bool is = window.ack_due();
    window.OnAckSent();
    return is;
  };
  Admit(100, true);
  EXPECT_TRUE(due()) << "wish";
  Admit(102);
  EXPECT_TRUE(due()) << "hole";
  Admit(101);
  EXPECT_TRUE(due()) << "hole filled";
  Admit(103);
  EXPECT_FALSE(due()) << "in order";
  Admit(101);
  EXPECT_TRUE(due()) << "duplicate";
  Admit(3000);
  EXPECT_TRUE(due()) << "beyond";
  window.WantAck();
  EXPECT_TRUE(due()) << "probe";
}

TEST_F(ReceiveWindowTest, Held_IsTheTimeSinceTheNewestArrival) {
  Admit(100);
  now = now + Microseconds(64);
  EXPECT_EQ(window.held(now), Microseconds(64));
  now = now + Seconds(200);
  EXPECT_GE(window.held(now), Seconds(200));
  Admit(101);
  EXPECT_EQ(window.held(now), Duration{});
}

TEST_F(ReceiveWindowTest, MarkedBytes_AreARunningCount) {
  window.CountMarked(0xFFFFFFFF);
  window.CountMarked(1001);
  EXPECT_EQ(window.marked_bytes(), 1000u);
}

TEST(LedgerPool, KeepsAFewBlocks_AndGivesBackTheRest) {
  LedgerPool pool;
  std::vector<RecordChunk*> chunks(100);
  for (RecordChunk*& chunk : chunks) chunk = pool.TakeChunk();
  EXPECT_EQ(pool.bytes_used(), 100 * sizeof(RecordChunk));
  EXPECT_EQ(pool.bytes_held(), pool.bytes_used());
  for (RecordChunk* chunk : chunks) pool.GiveBack(chunk);
  EXPECT_EQ(pool.bytes_used(), 0u);
  EXPECT_EQ(pool.bytes_held(), 16 * sizeof(RecordChunk));
}

TEST(LedgerPool, PageTakenAgain_IsClear) {
  LedgerPool pool;
  LedgerPage* page = pool.TakePage();
  page->arrived.fill(~uint64_t{0});
  pool.GiveBack(page);
  page = pool.TakePage();
  for (const uint64_t word : page->arrived) EXPECT_EQ(word, 0u);
  for (const RecordChunk* chunk : page->chunks) EXPECT_EQ(chunk, nullptr);
  pool.GiveBack(page);
}

}  // namespace
}  // namespace rocegw::flow
