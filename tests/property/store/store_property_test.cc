// SPDX-License-Identifier: Apache-2.0
// Random transactions, reads of the past, compactions and watches, compared with a model that keeps
// every state: memory and SQLite stores reply as the model does. The SQLite store is closed and
// reopened in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controlplane/store/local/memory_store.h"
#include "controlplane/store/sqlite/sqlite_store.h"
#include "tests/support/random.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::testing {
namespace {

using store::Change;
using store::Changes;
using store::Compare;
using store::Entry;
using store::KeyRange;
using store::Operation;
using store::Revision;
using store::Transaction;
using store::TransactionResult;

// All states by revision; these stores count without gaps.
class Model {
 public:
  using State = std::map<std::string, Entry>;

  const State& Now() const { return states_.back(); }
  const State& At(Revision revision) const { return states_[static_cast<size_t>(revision)]; }
  Revision newest() const { return static_cast<Revision>(states_.size()) - 1; }
  Revision compacted() const { return compacted_; }
  void Compact(Revision revision) { compacted_ = std::max(compacted_, revision); }

  TransactionResult Apply(const Transaction& transaction) {
    const State& old = Now();
    const auto find = [&old](const std::string& key) {
      const auto found = old.find(key);
      return found == old.end() ? nullptr : &found->second;
    };
    TransactionResult result;
    result.succeeded = true;
    for (const Compare& compare : transaction.compares) {
      result.succeeded = result.succeeded && compare.Holds(find(compare.key));
    }
    State next = old;
    bool changed = false;
    const Revision revision = newest() + 1;
    for (const auto& operation : result.succeeded ? transaction.then : transaction.otherwise) {
      const Entry* before = find(operation.key);
      auto& done = result.results.emplace_back();
      if (operation.kind == Operation::Kind::kGet) {
        if (before != nullptr) done.entry = *before;
      } else if (operation.kind == Operation::Kind::kDelete) {
        done.deleted = before != nullptr;
        changed |= done.deleted;
        next.erase(operation.key);
      } else {
        changed = true;
        next[operation.key] = {operation.key, operation.value,
                               before != nullptr ? before->create_revision : revision, revision, 0};
      }
    }
    if (changed) states_.push_back(std::move(next));
    result.revision = newest();
    return result;
  }

  // Returns the changes that a watch must report for a revision, ordered by key.
  std::vector<Change> ChangesAt(Revision revision, const KeyRange& range) const {
    std::vector<Change> changes;
    for (const auto& [key, entry] : At(revision)) {
      if (range.Contains(key) && entry.mod_revision == revision) changes.push_back({false, entry});
    }
    for (const auto& [key, entry] : At(revision - 1)) {
      if (!range.Contains(key) || At(revision).contains(key)) continue;
      changes.push_back({true, {key, "", 0, revision, 0}});
    }
    std::sort(changes.begin(), changes.end(),
              [](const auto& a, const auto& b) { return a.entry.key < b.entry.key; });
    return changes;
  }

 private:
  std::vector<State> states_{State()};
  Revision compacted_ = 0;
};

struct Watcher {
  KeyRange range;
  Revision next;
  std::unique_ptr<store::Watch> watch;
};

class StoreProperty : public ::testing::TestWithParam<bool> {
 protected:
  StoreProperty() { Open(); }

  void Open() {
    if (!GetParam()) {
      store = store::NewMemoryStore();
      return;
    }
    auto opened = store::OpenSqliteStore({.path = directory.File("store.db"), .vfs = {}});
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    store = std::move(*opened);
  }

  std::string Key() {
    static const std::string kKeys[] = {
        "a", "a/", "a/1", "a/2", "a0", "b", "b/\xff", "b/\xff\xff", std::string("a\0", 2)};
    return kKeys[random.Below(std::size(kKeys))];
  }
  KeyRange SomeRange() {
    switch (random.Below(4)) {
      case 0:
        return KeyRange::All();
      case 1:
        return KeyRange::Key(Key());
      default:
        return KeyRange::Prefix(Key());
    }
  }
  Compare SomeCompare();
  std::vector<Operation> SomeOperations();
  void Write();
  void Read();
  void ReadInPages(const KeyRange& range, Revision at, const std::vector<Entry>& expected);
  void Look(Watcher& watcher);
  void Step();

  Random random{TestSeed(7)};
  ScratchDirectory directory;
  std::unique_ptr<store::Store> store;
  Model model;
  std::vector<Watcher> watchers;
};

Compare StoreProperty::SomeCompare() {
  Compare compare;
  compare.key = Key();
  compare.field = static_cast<Compare::Field>(random.Below(3));
  compare.relation = static_cast<Compare::Relation>(random.Below(4));
  const auto found = model.Now().find(random.Below(4) == 0 ? Key() : compare.key);
  if (found != model.Now().end() && random.Below(4) != 0) {
    compare.revision = compare.field == Compare::Field::kModRevision
                           ? found->second.mod_revision
                           : found->second.create_revision;
    compare.value = found->second.value;
  } else if (random.Coin()) {
    compare.revision = static_cast<Revision>(random.Below(20));
    compare.value = std::to_string(random.Below(3));
  }
  return compare;
}

std::vector<Operation> StoreProperty::SomeOperations() {
  std::vector<Operation> operations;
  std::set<std::string> used;
  for (size_t i = random.Below(5); i > 0; --i) {
    const std::string key = Key();
    if (!used.insert(key).second) continue;
    switch (random.Below(4)) {
      case 0:
        operations.push_back(Operation::Get(key));
        break;
      case 1:
        operations.push_back(Operation::Delete(key));
        break;
      default:
        operations.push_back(Operation::Put(key, std::to_string(random.Below(4))));
    }
  }
  return operations;
}

void StoreProperty::Write() {
  Transaction transaction;
  for (size_t i = random.Below(3); i > 0; --i) transaction.compares.push_back(SomeCompare());
  transaction.then = SomeOperations();
  transaction.otherwise = SomeOperations();
  const TransactionResult expected = model.Apply(transaction);
  const auto result = store->Txn(transaction);
  ASSERT_TRUE(result.ok()) << result.status().text();
  ASSERT_EQ(result.value().succeeded, expected.succeeded);
  ASSERT_EQ(result.value().revision, expected.revision);
  ASSERT_EQ(result.value().results.size(), expected.results.size());
  for (size_t i = 0; i < expected.results.size(); ++i) {
    ASSERT_EQ(result.value().results[i].entry, expected.results[i].entry);
    ASSERT_EQ(result.value().results[i].deleted, expected.results[i].deleted);
  }
}

void StoreProperty::Read() {
  const KeyRange range = SomeRange();
  const Revision at =
      random.Coin() ? 0
                    : static_cast<Revision>(random.Below(static_cast<size_t>(model.newest()) + 3));
  const auto result = store->Range({range, at});
  if (at > model.newest() || (at != 0 && at < model.compacted())) {
    ASSERT_FALSE(result.ok()) << at;
    ASSERT_EQ(result.status().error(),
              at > model.newest() ? store::kFutureRevision : store::kCompacted);
    return;
  }
  ASSERT_TRUE(result.ok()) << result.status().text();
  ASSERT_EQ(result.value().revision, at == 0 ? model.newest() : at);
  std::vector<Entry> expected;
  for (const auto& [key, entry] : model.At(result.value().revision)) {
    if (range.Contains(key)) expected.push_back(entry);
  }
  ASSERT_EQ(result.value().entries, expected);
  ASSERT_FALSE(result.value().more);
  ReadInPages(range, result.value().revision, expected);
}

void StoreProperty::ReadInPages(const KeyRange& range, Revision at,
                                const std::vector<Entry>& expected) {
  if (at == 0) return;
  std::vector<Entry> seen;
  store::RangeRequest request{range, at, random.Between(1, 3)};
  while (true) {
    const auto page = store->Range(request);
    ASSERT_TRUE(page.ok());
    seen.insert(seen.end(), page.value().entries.begin(), page.value().entries.end());
    ASSERT_EQ(page.value().more, seen.size() < expected.size());
    if (!page.value().more) break;
    ASSERT_EQ(page.value().entries.size(), request.limit);
    request.range = request.range.After(seen.back().key);
  }
  ASSERT_EQ(seen, expected);
}

void StoreProperty::Look(Watcher& watcher) {
  for (size_t takes = random.Between(1, 40); takes > 0; --takes) {
    auto next = watcher.watch->TryNext();
    if (!next.ok()) {
      ASSERT_EQ(next.status().error(), store::kCompacted);
      ASSERT_LE(watcher.next, model.compacted());
      watcher.watch.reset();
      return;
    }
    // The next revision that touched the range.
    std::vector<Change> expected;
    while (watcher.next <= model.newest() && expected.empty()) {
      expected = model.ChangesAt(watcher.next++, watcher.range);
    }
    ASSERT_EQ(next->has_value(), !expected.empty());
    if (expected.empty()) return;
    std::sort((*next)->changes.begin(), (*next)->changes.end(),
              [](const auto& a, const auto& b) { return a.entry.key < b.entry.key; });
    ASSERT_EQ((*next)->revision, watcher.next - 1);
    ASSERT_EQ((*next)->changes, expected);
  }
}

void StoreProperty::Step() {
  const size_t what = random.Below(100);
  if (what < 55) return Write();
  if (what < 75) return Read();
  if (what < 92 && !watchers.empty()) {
    const size_t index = random.Below(watchers.size());
    Look(watchers[index]);
    if (watchers[index].watch == nullptr)
      watchers.erase(watchers.begin() + static_cast<long>(index));
    return;
  }
  if (what < 97 && watchers.size() < 8) {
    Watcher watcher{
        SomeRange(),
        static_cast<Revision>(random.Between(1, static_cast<size_t>(model.newest()) + 3)), nullptr};
    auto watch = store->NewWatch(watcher.range, watcher.next, {});
    ASSERT_EQ(watch.ok(), watcher.next > model.compacted());
    if (!watch.ok()) return;
    watcher.watch = std::move(*watch);
    watchers.push_back(std::move(watcher));
    return;
  }
  if (what == 97) {
    const Revision to =
        static_cast<Revision>(random.Below(static_cast<size_t>(model.newest()) + 2));
    const Status status = store->Compact(to);
    ASSERT_EQ(status.error(), to > model.newest() ? store::kFutureRevision : 0);
    if (status.ok()) model.Compact(to);
    return;
  }
  if (what == 98 && GetParam()) {
    watchers.clear();
    store.reset();
    Open();
  }
}

TEST_P(StoreProperty, RandomSteps_AnswersAreTheModels) {
  const int steps = GetParam() ? 1500 : 6000;
  for (int i = 0; i < steps; ++i) {
    Step();
    if (HasFatalFailure()) FAIL() << "at step " << i;
  }
  EXPECT_GT(model.newest(), steps / 5);
}

INSTANTIATE_TEST_SUITE_P(Backends, StoreProperty, ::testing::Bool());

}  // namespace
}  // namespace rocegw::testing
