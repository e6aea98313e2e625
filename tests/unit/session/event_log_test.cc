// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/state/event_log.h"

#include <gtest/gtest.h>

namespace rocegw::session {
namespace {

constexpr TimePoint kNow{Seconds(100).ns};

TEST(EventLog, Repetitions_AreCountedAndSaidNowAndThen) {
  EventLog log;
  EXPECT_TRUE(log.Add("QUOTA_EXCEEDED", "pool", "qps", "first", 1000, kNow));
  for (int i = 1; i < 100; ++i)
    EXPECT_FALSE(
        log.Add("QUOTA_EXCEEDED", "pool", "qps", "again", 1000 + i, kNow + Milliseconds(i)));
  EXPECT_TRUE(log.Add("QUOTA_EXCEEDED", "pool", "qps", "last", 5000, kNow + Seconds(10)));
  const auto rows = log.Rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].count, 101u);
  EXPECT_EQ(rows[0].first_ns, 1000);
  EXPECT_EQ(rows[0].last_ns, 5000);
  EXPECT_EQ(rows[0].text, "last");
}

TEST(EventLog, OtherSubject_IsAnotherEventAndTheLatestComesFirst) {
  EventLog log;
  EXPECT_TRUE(log.Add("QUOTA_EXCEEDED", "pool", "qps", "a", 1, kNow));
  EXPECT_TRUE(log.Add("QUOTA_EXCEEDED", "pool", "mrs", "b", 2, kNow));
  EXPECT_TRUE(log.Add("QUOTA_EXCEEDED", "other", "qps", "c", 3, kNow));
  log.Add("QUOTA_EXCEEDED", "pool", "qps", "d", 4, kNow);
  const auto rows = log.Rows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].text, "d");
  EXPECT_EQ(rows[1].text, "c");
  EXPECT_NE(rows[0].id, rows[1].id);
}

TEST(EventLog, Full_WhatHasNotHappenedForLongestGoes) {
  EventLog log;
  for (size_t i = 0; i < EventLog::kMost; ++i) log.Add("R", std::to_string(i), "", "", 0, kNow);
  log.Add("R", "0", "", "", 0, kNow);
  log.Add("R", "new", "", "", 0, kNow);
  const auto rows = log.Rows();
  ASSERT_EQ(rows.size(), EventLog::kMost);
  EXPECT_EQ(rows[0].object, "new");
  EXPECT_EQ(rows[1].object, "0");
  EXPECT_EQ(rows.back().object, "2");
}

}  // namespace
}  // namespace rocegw::session
