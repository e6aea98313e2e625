// SPDX-License-Identifier: Apache-2.0
#include "controlplane/audit/chain.h"

#include <gtest/gtest.h>

namespace rocegw::audit {
namespace {

using controlplane::v1::AuditSeal;

store::Entry Record(store::Revision revision, const std::string& value = "value") {
  return {.key = "audit/" + std::to_string(revision), .value = value, .mod_revision = revision};
}

// Ten records under two seals, two more behind them.
class ChainTest : public ::testing::Test {
 protected:
  ChainTest() {
    for (store::Revision revision = 1; revision <= 12; ++revision)
      records_.push_back(DigestOf(Record(revision)));
    seals_.push_back(*NextSeal(nullptr, records_, 6));
    seals_.push_back(*NextSeal(&seals_[0], records_, 10));
  }
  Verdict Look(const std::string& head = {}) const { return Verify(seals_, records_, head); }

  std::vector<Digested> records_;
  std::vector<AuditSeal> seals_;
};

TEST_F(ChainTest, Untouched_IsIntact) {
  const Verdict verdict = Look(HeadOf(seals_[0]));
  EXPECT_EQ(verdict.problem, "");
  EXPECT_EQ(verdict.records, 10u);
  EXPECT_EQ(verdict.unsealed, 2u);
  EXPECT_EQ(Verify({}, {}, "").problem, "");
  EXPECT_EQ(seals_[0].records(), 6u);
  EXPECT_EQ(seals_[1].after_revision(), 6);
}

TEST_F(ChainTest, OrderOfReading_DoesNotMatter) {
  std::swap(records_[0], records_[4]);
  EXPECT_EQ(Look().problem, "");
}

TEST_F(ChainTest, NothingNew_MakesNoSeal) {
  EXPECT_FALSE(NextSeal(&seals_[1], {records_.begin(), records_.begin() + 10}, 40).has_value());
}

TEST_F(ChainTest, EditedRecord_IsFound) {
  records_[7] = DigestOf(Record(8, "another value"));
  EXPECT_EQ(Look().revision, 10);
  EXPECT_NE(Look().problem, "");
}

TEST_F(ChainTest, RemovedOrAddedRecord_IsFound) {
  const auto all = records_;
  records_.erase(records_.begin() + 2);
  EXPECT_EQ(Look().revision, 6);
  records_ = all;
  records_.push_back(DigestOf(Record(3, "slipped in")));
  EXPECT_EQ(Look().revision, 6);
  records_ = all;
  // An edit through the store gives the record a newer revision.
  records_[2].revision = 13;
  EXPECT_EQ(Look().revision, 6);
}

TEST_F(ChainTest, SealMadeAnewForEditedRecords_DoesNotContinueTheChain) {
  records_[2] = DigestOf(Record(3, "another value"));
  seals_[0] = *NextSeal(nullptr, records_, 6);
  EXPECT_EQ(Look().revision, 10);
}

TEST_F(ChainTest, SealLeftOut_IsFound) {
  seals_.erase(seals_.begin());
  EXPECT_NE(Look().problem, "");
}

TEST_F(ChainTest, CutEnd_IsFoundByAKnownHead) {
  const std::string head = HeadOf(seals_[1]);
  seals_.pop_back();
  records_.resize(6);
  EXPECT_EQ(Look().problem, "") << "from within, it looks whole";
  EXPECT_NE(Look(head).problem, "");
}

}  // namespace
}  // namespace rocegw::audit
