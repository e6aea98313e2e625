// SPDX-License-Identifier: Apache-2.0
// Audit records of take-overs: one for each, whichever controller looks.
#include "controlplane/upgrades/take_over_records.h"

#include <gtest/gtest.h>

#include "controlplane/store/local/memory_store.h"

namespace rocegw::upgrades {
namespace {

class TakeOverRecordsTest : public ::testing::Test {
 protected:
  static TakeOverReports Report(uint64_t count) {
    TakeOverReports reports;
    reports["gateways/g"].set_count(count);
    return reports;
  }
  size_t Records() {
    auto rows = store_->Range({.range = store::KeyRange::Prefix("audit/")});
    EXPECT_TRUE(rows.ok());
    return rows->entries.size();
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  const store::Compare fence_ = store::Compare::Absent("no such key");
  TakeOverRecords records_{*store_, "test"};
};

TEST_F(TakeOverRecordsTest, EachRiseIsRecordedOnce) {
  records_.Record(Report(0), fence_);
  EXPECT_EQ(Records(), 0U);
  records_.Record(Report(1), fence_);
  records_.Record(Report(1), fence_);
  EXPECT_EQ(Records(), 1U);
  // Two since the last look.
  records_.Record(Report(3), fence_);
  EXPECT_EQ(Records(), 3U);
}

TEST_F(TakeOverRecordsTest, AFalseNumberCostsABoundedNumberOfRecords) {
  records_.Record(Report(1'000'000'000), fence_);
  EXPECT_EQ(Records(), 50U);
}

TEST_F(TakeOverRecordsTest, AnotherControllerRecordsNothingAgain) {
  records_.Record(Report(2), fence_);
  TakeOverRecords other(*store_, "other");
  other.Record(Report(2), fence_);
  EXPECT_EQ(Records(), 2U);
  other.Record(Report(3), fence_);
  // The first one finds that the store was changed, and reads it again.
  records_.Record(Report(3), fence_);
  records_.Record(Report(3), fence_);
  EXPECT_EQ(Records(), 3U);
}

TEST_F(TakeOverRecordsTest, AfterARestartItCountsFromZero) {
  records_.Record(Report(5), fence_);
  records_.Record(Report(0), fence_);
  EXPECT_EQ(Records(), 5U);
  records_.Record(Report(1), fence_);
  EXPECT_EQ(Records(), 6U);
}

TEST_F(TakeOverRecordsTest, AControllerThatDoesNotLeadRecordsNothing) {
  records_.Record(Report(1), store::Compare::Exists("no such key"));
  EXPECT_EQ(Records(), 0U);
}

}  // namespace
}  // namespace rocegw::upgrades
