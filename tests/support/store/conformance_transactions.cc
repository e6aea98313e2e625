// SPDX-License-Identifier: Apache-2.0
// Transactions: changes, comparisons, results, refusals.
#include <atomic>
#include <set>
#include <thread>

#include "tests/support/store/conformance.h"

namespace rocegw::testing {
namespace {

using store::Compare;
using store::Operation;
using store::Transaction;

TEST_P(StoreConformance, Put_NewKey_HasTheRevisionOfItsTransaction) {
  const Revision revision = Put("a", "1");
  const auto entry = Get("a");
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->value, "1");
  EXPECT_EQ(entry->create_revision, revision);
  EXPECT_EQ(entry->mod_revision, revision);
  EXPECT_EQ(Newest(), revision);
}

TEST_P(StoreConformance, Put_ExistingKey_KeepsItsCreateRevision) {
  const Revision created = Put("a", "1");
  const Revision changed = Put("a", "2");
  EXPECT_GT(changed, created);
  const auto entry = Get("a");
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->create_revision, created);
  EXPECT_EQ(entry->mod_revision, changed);
}

TEST_P(StoreConformance, Put_SameValue_IsAChange) {
  const Revision first = Put("a", "1");
  EXPECT_GT(Put("a", "1"), first);
}

TEST_P(StoreConformance, Put_AfterDelete_IsCreatedAnew) {
  Put("a", "1");
  const Revision deleted = Delete("a");
  EXPECT_FALSE(Get("a").has_value());
  const Revision again = Put("a", "2");
  EXPECT_GT(again, deleted);
  EXPECT_EQ(Get("a")->create_revision, again);
}

TEST_P(StoreConformance, Delete_AbsentKey_MakesNoRevision) {
  const Revision before = Put("a", "1");
  const auto result = Must({{}, {Operation::Delete("b")}, {}});
  EXPECT_EQ(result.revision, before);
  ASSERT_EQ(result.results.size(), 1u);
  EXPECT_FALSE(result.results[0].deleted);
  EXPECT_EQ(Newest(), before);
}

TEST_P(StoreConformance, Txn_OfManyKeys_IsOneRevision) {
  const Revision created = Put("gone", "x");
  const auto result = Must({{},
                            {Operation::Put("a", "1"), Operation::Put("b", "2"),
                             Operation::Delete("gone"), Operation::Get("absent")},
                            {}});
  EXPECT_TRUE(result.succeeded);
  EXPECT_GT(result.revision, created);
  ASSERT_EQ(result.results.size(), 4u);
  EXPECT_TRUE(result.results[2].deleted);
  EXPECT_FALSE(result.results[3].entry.has_value());
  EXPECT_EQ(Get("a")->mod_revision, result.revision);
  EXPECT_EQ(Get("b")->mod_revision, result.revision);
  EXPECT_FALSE(Get("gone").has_value());
}

TEST_P(StoreConformance, Txn_OfGetsOnly_ReadsAndMakesNoRevision) {
  const Revision revision = Put("a", "1");
  const auto result = Must({{}, {Operation::Get("a"), Operation::Get("b")}, {}});
  EXPECT_EQ(result.revision, revision);
  ASSERT_EQ(result.results.size(), 2u);
  EXPECT_EQ(result.results[0].entry, Get("a"));
  EXPECT_FALSE(result.results[1].entry.has_value());
}

TEST_P(StoreConformance, Txn_WithoutAnything_Succeeds) {
  const Revision revision = Put("a", "1");
  const auto result = Must({});
  EXPECT_TRUE(result.succeeded);
  EXPECT_EQ(result.revision, revision);
}

TEST_P(StoreConformance, Compare_EveryKind_HoldsAsItShould) {
  const Revision created = Put("a", "m");
  const Revision changed = Put("a", "n");
  using Field = Compare::Field;
  using Relation = Compare::Relation;
  const struct {
    const char* what;
    Compare compare;
    bool holds;
  } kCases[] = {
      {"exists", Compare::Exists("a"), true},
      {"exists, absent", Compare::Exists("b"), false},
      {"absent", Compare::Absent("b"), true},
      {"absent, exists", Compare::Absent("a"), false},
      {"modified at", Compare::ModifiedAt("a", changed), true},
      {"modified at another", Compare::ModifiedAt("a", created), false},
      {"modified at 0, absent", Compare::ModifiedAt("b", 0), true},
      {"created at", Compare::CreatedAt("a", created), true},
      {"created at another", Compare::CreatedAt("a", changed), false},
      {"modified before", {"a", Field::kModRevision, Relation::kLess, changed + 1, ""}, true},
      {"modified not before", {"a", Field::kModRevision, Relation::kLess, changed, ""}, false},
      {"modified after", {"a", Field::kModRevision, Relation::kGreater, created, ""}, true},
      {"created not at", {"a", Field::kCreateRevision, Relation::kNotEqual, changed, ""}, true},
      {"value", Compare::HasValue("a", "n"), true},
      {"another value", Compare::HasValue("a", "m"), false},
      {"value, absent", Compare::HasValue("b", ""), false},
      {"value not, absent", {"b", Field::kValue, Relation::kNotEqual, 0, "n"}, false},
      {"value not", {"a", Field::kValue, Relation::kNotEqual, 0, "m"}, true},
      {"value less", {"a", Field::kValue, Relation::kLess, 0, "n\xff"}, true},
      {"value greater", {"a", Field::kValue, Relation::kGreater, 0, "mz"}, true},
      {"value, bytes are unsigned", {"a", Field::kValue, Relation::kLess, 0, "\x80"}, true},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Must({{c.compare}, {}, {}}).succeeded, c.holds) << c.what;
  }
}

TEST_P(StoreConformance, Compare_OneOfTwoFails_OtherwiseIsDone) {
  Put("a", "1");
  Transaction transaction;
  transaction.compares = {Compare::Exists("a"), Compare::Exists("b")};
  transaction.then = {Operation::Put("a", "then")};
  transaction.otherwise = {Operation::Put("c", "otherwise"), Operation::Get("a")};
  const auto result = Must(transaction);
  EXPECT_FALSE(result.succeeded);
  ASSERT_EQ(result.results.size(), 2u);
  EXPECT_EQ(result.results[1].entry->value, "1");
  EXPECT_EQ(Get("a")->value, "1");
  EXPECT_EQ(Get("c")->value, "otherwise");
}

TEST_P(StoreConformance, Compare_SeesTheStateBeforeItsTransaction) {
  const auto result = Must({{Compare::Absent("a")}, {Operation::Put("a", "1")}, {}});
  EXPECT_TRUE(result.succeeded);
  EXPECT_FALSE(Must({{Compare::Absent("a")}, {Operation::Put("a", "2")}, {}}).succeeded);
}

TEST_P(StoreConformance, Txn_OverALimit_IsRefusedWhole) {
  const Revision before = Put("a", "1");
  Transaction many;
  for (size_t i = 0; i <= store::kMaxOperations; ++i)
    many.then.push_back(Operation::Put("k" + std::to_string(i), "v"));
  Transaction many_compares;
  for (size_t i = 0; i <= store::kMaxOperations; ++i)
    many_compares.compares.push_back(Compare::Absent("k" + std::to_string(i)));
  const struct {
    const char* what;
    Transaction transaction;
  } kCases[] = {
      {"operations", many},
      {"compares", many_compares},
      {"bytes", {{}, {Operation::Put("a", std::string(store::kMaxTransactionBytes, 'x'))}, {}}},
      {"bytes in the branch not taken",
       {{}, {}, {Operation::Put("a", std::string(store::kMaxTransactionBytes, 'x'))}}},
      {"put twice", {{}, {Operation::Put("k", "1"), Operation::Put("k", "2")}, {}}},
      {"put and delete", {{}, {Operation::Put("k", "1"), Operation::Delete("k")}, {}}},
      {"put and get", {{}, {Operation::Put("k", "1"), Operation::Get("k")}, {}}},
      {"empty key", {{}, {Operation::Put("", "1")}, {}}},
      {"empty key compared", {{Compare::Absent("")}, {}, {}}},
      {"long key", {{}, {Operation::Put(std::string(store::kMaxKeyBytes + 1, 'k'), "1")}, {}}},
  };
  for (const auto& c : kCases) {
    const auto result = store().Txn(c.transaction);
    ASSERT_FALSE(result.ok()) << c.what;
    EXPECT_EQ(result.status().error(), store::kInvalid) << c.what;
    EXPECT_FALSE(result.status().text().empty()) << c.what;
  }
  EXPECT_EQ(Newest(), before);
}

TEST_P(StoreConformance, Txn_AtTheLimits_IsDone) {
  Transaction transaction;
  for (size_t i = 0; i < store::kMaxOperations; ++i) {
    const std::string key = "k" + std::to_string(i);
    transaction.compares.push_back(Compare::Absent(key));
    transaction.then.push_back(Operation::Put(key, "v"));
    transaction.otherwise.push_back(Operation::Get(key));
  }
  EXPECT_TRUE(Must(transaction).succeeded);
  EXPECT_EQ(Must(transaction).results.size(), store::kMaxOperations);
  EXPECT_EQ(List("k").entries.size(), store::kMaxOperations);

  const std::string key(store::kMaxKeyBytes, 'k');
  const std::string value(store::kMaxTransactionBytes - key.size(), 'v');
  Put(key, value);
  EXPECT_EQ(Get(key)->value, value);
}

TEST_P(StoreConformance, Txn_AnyBytes_AreKept) {
  const std::string key("\0\xff/\x01\0", 5);
  const std::string value("\0\x80\xff\0", 4);
  Put(key, value);
  Put("empty", "");
  EXPECT_EQ(Get(key)->value, value);
  EXPECT_EQ(Get("empty")->value, "");
  EXPECT_FALSE(Get(std::string("\0\xff/\x01", 4)).has_value());
}

TEST_P(StoreConformance, Txn_FromManyThreads_EachCountsOnce) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 20;
  Put("counter", "0");
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  std::mutex mutex;
  std::set<Revision> revisions;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int done = 0; done < kRounds;) {
        const auto now = Get("counter");
        if (!now.has_value()) return;
        const auto result =
            Must({{Compare::ModifiedAt("counter", now->mod_revision)},
                  {Operation::Put("counter", std::to_string(std::stoi(now->value) + 1))},
                  {}});
        if (!result.succeeded) continue;
        ++done;
        const std::lock_guard lock(mutex);
        revisions.insert(result.revision);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Get("counter")->value, std::to_string(kThreads * kRounds));
  EXPECT_EQ(revisions.size(), size_t{kThreads * kRounds});
}

TEST_P(StoreConformance, TxnAsync_Callback_MayStartTheNext) {
  std::atomic<int> done = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void(int)> start = [&](int round) {
    store().TxnAsync({{}, {Operation::Put("a", std::to_string(round))}, {}},
                     [&, round](auto result) {
                       EXPECT_TRUE(result.ok());
                       if (round < 20) return start(round + 1);
                       const std::lock_guard lock(mutex);
                       ++done;
                       changed.notify_all();
                     });
  };
  start(0);
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return done == 1; });
  lock.unlock();
  EXPECT_EQ(Get("a")->value, "20");
}

TEST_P(StoreConformance, Uuid_IsAnIdentity) { EXPECT_EQ(store().uuid().size(), 36u); }

}  // namespace
}  // namespace rocegw::testing
