// SPDX-License-Identifier: Apache-2.0
// Threads of the SQLite store: the thread that writes, answers, or wakes watches.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <semaphore>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "controlplane/store/sqlite/sqlite_store.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::testing {
namespace {

using store::KeyRange;
using store::Operation;
using store::Revision;

class SqliteThreads : public ::testing::Test {
 protected:
  Revision Put(const std::string& key) {
    const auto result = store_->Txn({{}, {Operation::Put(key, "v")}, {}});
    EXPECT_TRUE(result.ok()) << result.status().text();
    return result.ok() ? result.value().revision : 0;
  }

  ScratchDirectory directory_;
  std::unique_ptr<store::Store> store_ =
      std::move(*store::OpenSqliteStore({.path = directory_.File("store.db"), .vfs = {}}));
};

TEST_F(SqliteThreads, TxnHere_WhileNobodyWrites_IsDoneByItsCaller) {
  std::thread::id by;
  store_->TxnHere({{}, {Operation::Put("a", "v")}, {}}, [&](const auto& result) {
    EXPECT_TRUE(result.ok());
    by = std::this_thread::get_id();
  });
  EXPECT_EQ(by, std::this_thread::get_id());
  EXPECT_TRUE(store_->Get("a")->has_value());
}

TEST_F(SqliteThreads, TxnAsync_IsNotDoneByItsCaller) {
  std::promise<std::thread::id> by;
  store_->TxnAsync({{}, {Operation::Put("a", "v")}, {}},
                   [&](const auto&) { by.set_value(std::this_thread::get_id()); });
  EXPECT_NE(by.get_future().get(), std::this_thread::get_id());
}

// An answer may start the next write: the earlier one has ended.
TEST_F(SqliteThreads, TxnHere_FromAnAnswer_IsDoneByItsCaller) {
  bool done = false;
  store_->TxnHere({{}, {Operation::Put("a", "v")}, {}}, [&](const auto&) {
    store_->TxnHere({{}, {Operation::Put("b", "v")}, {}},
                    [&](const auto& result) { done = result.ok(); });
  });
  EXPECT_TRUE(done);
}

TEST_F(SqliteThreads, CallersAndItsOwn_WriteEachTransactionOnce) {
  constexpr int kThreads = 6;
  constexpr int kEach = 200;
  std::vector<std::vector<Revision>> revisions(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < kEach; ++n) {
        store::Transaction transaction{
            {}, {Operation::Put("k" + std::to_string(i), std::to_string(n))}, {}};
        std::promise<Revision> revision;
        const auto done = [&](const auto& result) {
          revision.set_value(result.ok() ? result.value().revision : 0);
        };
        if (i % 2 == 0) {
          store_->TxnHere(std::move(transaction), done);
        } else {
          store_->TxnAsync(std::move(transaction), done);
        }
        revisions[i].push_back(revision.get_future().get());
        if (i == 0 && n % 50 == 49) {
          EXPECT_TRUE(store_->Compact(revisions[i].back()).ok());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<Revision> all;
  for (const auto& some : revisions) {
    EXPECT_TRUE(std::ranges::is_sorted(some));
    all.insert(some.begin(), some.end());
  }
  EXPECT_EQ(all.size(), size_t{kThreads * kEach});
  EXPECT_EQ(*all.begin(), 1);
  EXPECT_EQ(*all.rbegin(), kThreads * kEach);
}

// Reads wait for no writer, on any thread.
TEST_F(SqliteThreads, TransactionThatOnlyReads_IsAnsweredAtOnce) {
  const Revision revision = Put("a");
  store::Transaction reads{{store::Compare::Exists("b")}, {}, {Operation::Get("a")}};
  bool answered = false;
  store_->TxnAsync(reads, [&](const StatusOr<store::TransactionResult>& result) {
    ASSERT_TRUE(result.ok());
    EXPECT_FALSE(result.value().succeeded);
    EXPECT_EQ(result.value().revision, revision);
    ASSERT_EQ(result.value().results.size(), 1u);
    EXPECT_EQ(result.value().results[0].entry, (store::Entry{"a", "v", revision, revision, 0}));
    answered = true;
  });
  EXPECT_TRUE(answered);
}

TEST_F(SqliteThreads, WatchThatNothingConcerns_IsNotWokenAndNotOvertaken) {
  const Revision first = Put("start");
  std::atomic<int> woken = 0;
  const auto quiet =
      std::move(*store_->NewWatch(KeyRange::Prefix("quiet/"), first + 1, [&] { ++woken; }));
  ASSERT_FALSE(quiet->TryNext()->has_value());
  // Opened later, so that it is woken after the other one.
  std::counting_semaphore<> round(0);
  const auto all =
      std::move(*store_->NewWatch(KeyRange::All(), first + 1, [&] { round.release(); }));
  const auto take_all = [&] {
    while (all->TryNext()->has_value()) {
    }
  };
  const auto put = [&](const std::string& key) {
    take_all();
    const Revision revision = Put(key);
    EXPECT_TRUE(round.try_acquire_for(std::chrono::seconds(20)));
    return revision;
  };
  Revision last = 0;
  for (int i = 0; i < 50; ++i) last = put("noise" + std::to_string(i));
  EXPECT_EQ(woken, 0);
  take_all();
  ASSERT_TRUE(store_->Compact(last).ok());
  auto nothing = quiet->TryNext();
  ASSERT_TRUE(nothing.ok()) << nothing.status().text();
  EXPECT_FALSE(nothing->has_value());
  const Revision concerns = put("quiet/a");
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(quiet->TryNext()->value().revision, concerns);
}

}  // namespace
}  // namespace rocegw::testing
