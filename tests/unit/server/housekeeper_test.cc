// SPDX-License-Identifier: Apache-2.0
// Removals and compactions of the housekeeper, with a clock of the test, and no effect of an ended
// term.
#include "controlplane/server/housekeeper.h"

#include <google/protobuf/util/time_util.h>
#include <gtest/gtest.h>

#include <future>

#include "controlplane/identity/join_token.h"
#include "controlplane/server/metrics/measured_store.h"
#include "controlplane/store/local/memory_store.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::server {
namespace {

using identity::TimePoint;
using std::chrono::hours;
using std::chrono::seconds;
using store::Compare;
using store::Operation;

class HousekeeperTest : public ::testing::Test {
 protected:
  store::Revision Put(const std::string& key, const std::string& value) {
    auto result =
        store_->Txn({.compares = {}, .then = {Operation::Put(key, value)}, .otherwise = {}});
    return result->revision;
  }
  void PutRequest(const std::string& id, TimePoint time) {
    controlplane::v1::RequestRecord record;
    *record.mutable_time() =
        google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(time.time_since_epoch().count());
    Put("request/" + id, record.SerializeAsString());
  }
  Status Round(TimePoint now) {
    return housekeeping_.Round(Compare::CreatedAt("election/x", epoch_), now);
  }
  bool Has(const std::string& key) { return store_->Get(key).value().has_value(); }

  const TimePoint now_ = identity::Now();
  std::unique_ptr<store::MemoryStore> store_ = store::NewMemoryStore();
  Housekeeping housekeeping_{*store_, hours(1)};
  const store::Revision epoch_ = Put("election/x", "me");
};

TEST_F(HousekeeperTest, Round_RemovesAnswersAfterADayAndTokensAfterTheirTime) {
  for (int i = 0; i < 250; ++i) PutRequest("old" + std::to_string(i), now_ - hours(24));
  PutRequest("new", now_ - hours(24) + seconds(1));
  Put("request/damaged", "\xff");
  Put("intent/tenants/t", "\xff");
  const auto token = identity::MakeJoinToken({}, seconds(60), "me", now_);
  ASSERT_TRUE(store_->Txn({.compares = {}, .then = {token.put}, .otherwise = {}}).ok());
  ASSERT_TRUE(Round(now_).ok());
  EXPECT_FALSE(Has("request/old0"));
  EXPECT_FALSE(Has("request/old249"));
  EXPECT_FALSE(Has("request/damaged"));
  EXPECT_TRUE(Has("request/new"));
  EXPECT_TRUE(Has("intent/tenants/t"));
  EXPECT_TRUE(Has(token.put.key));
  ASSERT_TRUE(Round(now_ + seconds(60)).ok());
  EXPECT_TRUE(Has(token.put.key)) << "it is not looked at in every round";
  ASSERT_TRUE(Round(now_ + Housekeeping::kRemoveEvery).ok());
  EXPECT_FALSE(Has(token.put.key));
  EXPECT_FALSE(Has("request/new"));
}

TEST_F(HousekeeperTest, Round_OfATermThatIsOver_RemovesNothing) {
  PutRequest("old", now_ - hours(25));
  ASSERT_TRUE(
      store_->Txn({.compares = {}, .then = {Operation::Delete("election/x")}, .otherwise = {}})
          .ok());
  Put("election/x", "another");
  EXPECT_FALSE(Round(now_).ok());
  EXPECT_TRUE(Has("request/old"));
}

TEST_F(HousekeeperTest, Round_GivesUpWhatIsOlderThanTheHistoryAndNoMore) {
  const store::Revision first = Put("k", "1");
  ASSERT_TRUE(Round(now_).ok());
  const store::Revision second = Put("k", "2");
  ASSERT_TRUE(Round(now_ + seconds(1800)).ok());
  const auto readable = [&](store::Revision revision) {
    return store_->Range({.range = store::KeyRange::Key("k"), .revision = revision}).ok();
  };
  EXPECT_TRUE(readable(first - 1));
  ASSERT_TRUE(Round(now_ + seconds(3600)).ok());
  EXPECT_FALSE(readable(first - 1));
  EXPECT_TRUE(readable(first)) << "was the newest an hour ago";
  ASSERT_TRUE(Round(now_ + seconds(5400)).ok());
  EXPECT_FALSE(readable(first));
  EXPECT_TRUE(readable(second));
}

TEST(Past, ForgetsWhatItGives) {
  Past past;
  const TimePoint now = identity::Now();
  past.Note(now, 5);
  past.Note(now + seconds(1), 5);
  past.Note(now + seconds(2), 7);
  EXPECT_EQ(past.TakeBefore(now - seconds(1)), 0);
  EXPECT_EQ(past.TakeBefore(now + seconds(1)), 5);
  EXPECT_EQ(past.TakeBefore(now + seconds(1)), 0);
  EXPECT_EQ(past.TakeBefore(now + seconds(9)), 7);
}

TEST(MeasuredStore, CountsByOperationAndPassesAnswersOn) {
  MeasuredStore store(store::NewMemoryStore());
  ASSERT_TRUE(
      store.Txn({.compares = {}, .then = {Operation::Put("k", "v")}, .otherwise = {}}).ok());
  EXPECT_EQ((*store.Get("k"))->value, "v");
  EXPECT_EQ(store.Range({.revision = 1000}).status().error(), store::kFutureRevision);
  bool posted = false;
  store.TxnAsync({.compares = {}, .then = {Operation::Put("k", "w")}, .otherwise = {}},
                 [&](const auto& result) { posted = result.ok(); });
  EXPECT_TRUE(posted);
  ASSERT_TRUE(store.Txn({.compares = {}, .then = {Operation::Get("k")}, .otherwise = {}}).ok());
  const auto families = store.Collect();
  ASSERT_EQ(families.size(), 2u);
  ASSERT_EQ(families[0].metric.size(), 2u);
  EXPECT_EQ(families[0].metric[0].label[0].value, "read");
  EXPECT_EQ(families[0].metric[0].histogram.sample_count, 3u);
  EXPECT_EQ(families[0].metric[1].histogram.sample_count, 2u);
  EXPECT_EQ(families[1].metric[0].counter.value, 1);
  EXPECT_EQ(families[1].metric[1].counter.value, 0);
}

}  // namespace
}  // namespace rocegw::server
