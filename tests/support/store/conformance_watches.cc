// SPDX-License-Identifier: Apache-2.0
// Watches: order, completeness, resumption, slow readers, readers behind compaction.
#include <atomic>
#include <future>
#include <thread>

#include "tests/support/store/conformance.h"

namespace rocegw::testing {
namespace {

using std::chrono::milliseconds;
using store::BlockingWatch;
using store::KeyRange;
using store::Operation;

using Strings = std::vector<std::string>;

TEST_P(StoreConformance, Watch_FromThePast_DeliversWholeTransactionsInOrder) {
  const Revision first = Put("a", "1");
  const Revision second =
      Must({{}, {Operation::Put("a", "2"), Operation::Put("b", "2"), Operation::Put("c", "2")}, {}})
          .revision;
  const Revision third =
      Must({{}, {Operation::Delete("b"), Operation::Put("c", "3")}, {}}).revision;
  BlockingWatch watch(store(), KeyRange::All(), first);
  auto changes = Next(watch);
  EXPECT_EQ(changes.revision, first);
  EXPECT_EQ(Text(changes), Strings{"put a=1"});
  changes = Next(watch);
  EXPECT_EQ(changes.revision, second);
  EXPECT_EQ(Text(changes), (Strings{"put a=2", "put b=2", "put c=2"}));
  changes = Next(watch);
  EXPECT_EQ(changes.revision, third);
  EXPECT_EQ(Text(changes), (Strings{"del b", "put c=3"}));
}

TEST_P(StoreConformance, Watch_Entries_AreThoseOfTheStore) {
  Put("a", "1");
  const Revision second = Put("a", "2");
  BlockingWatch watch(store(), KeyRange::All(), second);
  const auto changes = Next(watch);
  ASSERT_EQ(changes.changes.size(), 1u);
  EXPECT_EQ(changes.changes[0].entry, Get("a"));
}

TEST_P(StoreConformance, Watch_FromNow_WaitsForWhatComes) {
  const Revision newest = Put("a", "1");
  BlockingWatch watch(store(), KeyRange::All(), newest + 1);
  auto none = watch.Next(milliseconds(20));
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
  auto next = std::async(std::launch::async, [&] { return Next(watch); });
  const Revision later = Put("b", "2");
  const auto changes = next.get();
  EXPECT_EQ(changes.revision, later);
  EXPECT_EQ(Text(changes), Strings{"put b=2"});
}

// A watch that begins to wait must not consume the wake-up of another one.
TEST_P(StoreConformance, Watches_ThatWaitTogether_AreAllWoken) {
  constexpr int kRounds = 300;
  const Revision newest = Put("a", "0");
  std::atomic<int> behind{0};
  std::vector<std::thread> watchers;
  std::atomic<bool> missed{false};
  for (int i = 0; i < 3; ++i) {
    watchers.emplace_back([&] {
      BlockingWatch watch(store(), KeyRange::Key("a"), newest + 1);
      for (int round = 0; round < kRounds && !missed; ++round) {
        auto next = watch.Next(std::chrono::seconds(20));
        if (!next.ok() || !next->has_value()) missed = true;
        --behind;
      }
    });
  }
  for (int round = 0; round < kRounds && !missed; ++round) {
    behind += 3;
    Put("a", std::to_string(round));
    // A change outside the watched range arrives while some watches wait and others do not yet.
    Put("b", "");
    while (behind > 0 && !missed) std::this_thread::yield();
  }
  for (std::thread& watcher : watchers) watcher.join();
  EXPECT_FALSE(missed);
}

TEST_P(StoreConformance, Watch_OfARange_SeesOnlyThat) {
  const Revision first = Put("p/a", "1");
  Put("q/a", "1");
  Must({{}, {Operation::Put("q/b", "2"), Operation::Put("p/b", "2")}, {}});
  Delete("q/a");
  Put("p", "3");
  Delete("p/a");
  BlockingWatch watch(store(), KeyRange::Prefix("p/"), first);
  EXPECT_EQ(Text(Next(watch)), Strings{"put p/a=1"});
  EXPECT_EQ(Text(Next(watch)), Strings{"put p/b=2"});
  EXPECT_EQ(Text(Next(watch)), Strings{"del p/a"});
  auto none = watch.Next(milliseconds(20));
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
}

TEST_P(StoreConformance, Watch_FromRevisionZero_IsRefused) {
  BlockingWatch watch(store(), KeyRange::All(), 0);
  EXPECT_EQ(watch.Next(milliseconds(0)).status().error(), store::kInvalid);
}

TEST_P(StoreConformance, Watch_OfASlowConsumer_LosesNothingAndHoldsUpNobody) {
  constexpr int kWrites = 700;
  const Revision before = Put("p", "first");
  BlockingWatch slow(store(), KeyRange::Prefix("k"), before + 1);
  auto none = slow.Next(milliseconds(0));
  ASSERT_TRUE(none.ok());
  std::vector<Revision> revisions;
  revisions.reserve(kWrites);
  for (int i = 0; i < kWrites; ++i) {
    revisions.push_back(
        Must({{}, {Operation::Put("k", std::to_string(i)), Operation::Put("k2", "x")}, {}})
            .revision);
  }
  for (int i = 0; i < kWrites; ++i) {
    const auto changes = Next(slow);
    ASSERT_EQ(changes.revision, revisions[static_cast<size_t>(i)]);
    ASSERT_EQ(changes.changes.size(), 2u);
  }
}

TEST_P(StoreConformance, Watch_BlockedInReady_DoesNotHoldUpWriters) {
  const Revision before = Put("a", "0");
  std::promise<void> go;
  auto gone = go.get_future().share();
  std::atomic<int> calls = 0;
  {
    auto watch = store().NewWatch(KeyRange::All(), before + 1, [&calls, gone] {
      ++calls;
      gone.wait();
    });
    ASSERT_TRUE(watch.ok());
    auto none = (*watch)->TryNext();
    ASSERT_TRUE(none.ok());
    // One write at a time, so that the thread that made it durable acknowledges it.
    for (int i = 0; i < 20; ++i) Put("a", std::to_string(i));
    go.set_value();
  }
  EXPECT_LE(calls, 1) << "ready comes once for each TryNext that found nothing";
}

TEST_P(StoreConformance, Watch_WhileOthersWrite_MissesNothing) {
  constexpr int kThreads = 4;
  constexpr int kWrites = 60;
  const Revision before = Put("start", "");
  BlockingWatch watch(store(), KeyRange::Prefix("w/"), before + 1);
  std::vector<std::thread> writers;
  writers.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    writers.emplace_back([this, t] {
      for (int i = 0; i < kWrites; ++i) Put("w/" + std::to_string(t), std::to_string(i));
    });
  }
  std::map<std::string, int> seen;
  Revision last = before;
  for (int i = 0; i < kThreads * kWrites; ++i) {
    const auto changes = Next(watch);
    ASSERT_GT(changes.revision, last);
    last = changes.revision;
    ASSERT_EQ(changes.changes.size(), 1u);
    const auto& entry = changes.changes[0].entry;
    ASSERT_EQ(entry.value, std::to_string(seen[entry.key]++)) << entry.key;
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(last, Newest());
}

TEST_P(StoreConformance, Watch_BelowTheCompaction_IsToldToListAgain) {
  const Revision first = Put("a", "1");
  const Revision second = Put("a", "2");
  const Revision third = Put("a", "3");
  ASSERT_TRUE(store().Compact(second).ok());
  for (const Revision from : {first, second}) {
    BlockingWatch watch(store(), KeyRange::All(), from);
    const auto next = watch.Next(std::chrono::seconds(20));
    ASSERT_FALSE(next.ok()) << from;
    EXPECT_EQ(next.status().error(), store::kCompacted);
  }
  BlockingWatch watch(store(), KeyRange::All(), third);
  EXPECT_EQ(Text(Next(watch)), Strings{"put a=3"});
}

TEST_P(StoreConformance, Watch_AtTheCompactionOfADeletion_IsToldToListAgain) {
  Put("a", "1");
  const Revision deleted = Delete("a");
  ASSERT_TRUE(store().Compact(deleted).ok());
  {
    BlockingWatch watch(store(), KeyRange::All(), deleted);
    const auto next = watch.Next(std::chrono::seconds(20));
    ASSERT_FALSE(next.ok());
    EXPECT_EQ(next.status().error(), store::kCompacted);
  }
  BlockingWatch watch(store(), KeyRange::All(), deleted + 1);
  Put("b", "2");
  EXPECT_EQ(Text(Next(watch)), Strings{"put b=2"});
}

TEST_P(StoreConformance, Watch_Interrupted_ReturnsAtOnce) {
  const Revision newest = Put("a", "1");
  BlockingWatch watch(store(), KeyRange::All(), newest + 1);
  auto next = std::async(std::launch::async, [&] { return watch.Next(std::chrono::minutes(5)); });
  watch.Interrupt();
  const auto result = next.get();
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result.value().has_value());
}

}  // namespace
}  // namespace rocegw::testing
