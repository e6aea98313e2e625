// SPDX-License-Identifier: Apache-2.0
#include "controlplane/audit/sealer.h"

#include <google/protobuf/util/time_util.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "controlplane/audit/chain.h"
#include "controlplane/model/stored.h"
#include "controlplane/model/timestamp.h"
#include "controlplane/store/local/memory_store.h"
#include "tests/support/store/forwarding_store.h"

namespace rocegw::audit {
namespace {

using google::protobuf::util::TimeUtil;
using store::Operation;

// Store that counts range reads; watches deliver only new records.
class CountingStore final : public rocegw::testing::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  void RangeAsync(store::RangeRequest request, RangeDone done) override {
    ForwardingStore::RangeAsync(std::move(request), [&](StatusOr<store::RangeResult> result) {
      if (result.ok()) entries += result->entries.size();
      done(std::move(result));
    });
  }

  size_t entries = 0;
};

class SealerTest : public ::testing::Test {
 protected:
  SealerTest() { Put("election/x", "me"); }
  void Put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(
        store_->Txn({.compares = {}, .then = {Operation::Put(key, value)}, .otherwise = {}}).ok());
  }
  void Record(const std::string& name, int64_t age_seconds = 0) {
    const auto time = TimeUtil::NanosecondsToTimestamp(
        TimeUtil::TimestampToNanoseconds(model::Now()) - age_seconds * 1000000000);
    Put(model::AuditKeyFrom(time) + name, "record " + name);
  }
  StatusOr<std::optional<std::string>> Seal() {
    return sealer_.SealNew(store::Compare::HasValue("election/x", "me"));
  }
  Verdict Check(const std::string& head = {}) {
    std::vector<controlplane::v1::AuditSeal> seals;
    std::vector<Digested> records;
    const auto stored = store_->Range({.range = store::KeyRange::Prefix(kSealPrefix)});
    for (const auto& entry : stored.value().entries) {
      EXPECT_TRUE(seals.emplace_back().ParseFromString(entry.value));
    }
    const auto written = store_->Range({.range = store::KeyRange::Prefix(model::kAuditPrefix)});
    for (const auto& entry : written.value().entries) {
      records.push_back(DigestOf(entry));
    }
    return Verify(seals, std::move(records), head);
  }

  std::unique_ptr<store::MemoryStore> store_ = store::NewMemoryStore();
  Sealer sealer_{*store_};
};

TEST_F(SealerTest, EachRound_SealsWhatIsNew) {
  EXPECT_FALSE(Seal().value().has_value()) << "there is nothing";
  Record("a");
  Record("b");
  const auto first = Seal();
  ASSERT_TRUE(first.value().has_value());
  EXPECT_FALSE(Seal().value().has_value());
  Record("c");
  EXPECT_EQ(Check().unsealed, 1u);
  ASSERT_TRUE(Seal().value().has_value());
  const Verdict verdict = Check(*first.value());
  EXPECT_EQ(verdict.problem, "");
  EXPECT_EQ(verdict.records, 3u);
  EXPECT_EQ(verdict.unsealed, 0u);
}

TEST_F(SealerTest, RecordOfAClockThatIsHoursBehind_IsSealedToo) {
  Record("a");
  ASSERT_TRUE(Seal().value().has_value());
  Record("late", 20 * 3600);
  ASSERT_TRUE(Seal().value().has_value());
  EXPECT_EQ(Check().problem, "");
  EXPECT_EQ(Check().records, 2u);
}

TEST_F(SealerTest, WhoIsNotTheLeaderAnyMore_SealsNothing) {
  Record("a");
  Put("election/x", "another");
  EXPECT_EQ(Seal().status().error(), ECANCELED);
  EXPECT_EQ(Check().unsealed, 1u);
}

TEST_F(SealerTest, AnotherSealer_ContinuesTheChainWhereverItEnds) {
  for (int seals = 1; seals <= 20; ++seals) {
    Record("r" + std::to_string(seals));
    // A sealer that has followed, and a new one.
    Sealer fresh(*store_);
    Sealer& sealer = seals % 3 == 0 ? sealer_ : fresh;
    auto sealed = sealer.SealNew(store::Compare::HasValue("election/x", "me"));
    // The follower finds a seal of another, and starts again.
    if (!sealed.ok()) sealed = sealer.SealNew(store::Compare::HasValue("election/x", "me"));
    ASSERT_TRUE(sealed.ok() && sealed->has_value()) << seals;
    EXPECT_EQ(Check().problem, "");
    EXPECT_EQ(Check().records, static_cast<uint64_t>(seals));
    EXPECT_EQ(Check().unsealed, 0u);
  }
}

TEST_F(SealerTest, FollowerThatTheCompactionOvertook_SealsWhatItMissed) {
  Record("a");
  ASSERT_TRUE(Seal().value().has_value());
  Record("b");
  Record("c");
  ASSERT_TRUE(store_->Compact(store_->Range({}).value().revision).ok());
  ASSERT_TRUE(Seal().value().has_value());
  EXPECT_EQ(Check().problem, "");
  EXPECT_EQ(Check().records, 3u);
}

TEST_F(SealerTest, EachRound_ReadsOnlyWhatIsNew) {
  for (int i = 0; i < 3000; ++i) Record(std::to_string(i));
  CountingStore counting(*store_);
  Sealer sealer(counting);
  const auto leads = store::Compare::HasValue("election/x", "me");
  ASSERT_TRUE(sealer.SealNew(leads).value().has_value());
  EXPECT_GE(counting.entries, 3000u);
  counting.entries = 0;
  Record("new");
  ASSERT_TRUE(sealer.SealNew(leads).value().has_value());
  EXPECT_FALSE(sealer.SealNew(leads).value().has_value());
  EXPECT_EQ(counting.entries, 0u);
  EXPECT_EQ(Check().records, 3001u);
}

TEST_F(SealerTest, EditInTheStore_IsFound) {
  Record("a");
  Record("b");
  ASSERT_TRUE(Seal().value().has_value());
  const auto entries =
      store_->Range({.range = store::KeyRange::Prefix(model::kAuditPrefix)}).value().entries;
  Put(entries[0].key, "nothing to see here");
  EXPECT_NE(Check().problem, "");
}

}  // namespace
}  // namespace rocegw::audit
