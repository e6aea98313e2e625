// SPDX-License-Identifier: Apache-2.0
// Rows of migrations: what a transaction holds, and rows that are not what they should be.
#include "controlplane/migrations/stored_migration.h"

#include <gtest/gtest.h>

#include "controlplane/store/local/memory_store.h"
#include "tests/support/migration/plans.h"

namespace rocegw::migrations {
namespace {

using migration::Order;
using migration::Verb;

StoredMigration NewMigration(uint32_t nodes) {
  StoredMigration stored{.id = "m", .plan = migration::TestPlan({.nodes = nodes})};
  stored.record = migration::NewRecord(stored.plan);
  return stored;
}

std::vector<store::Entry> RowsOf(store::Store& store) {
  return store.Range({.range = store::KeyRange::Prefix(kMigrationPrefix)})->entries;
}

TEST(StoredMigration, IsReadBackWithTheRevisionOfItsHead) {
  const auto store = store::NewMemoryStore();
  StoredMigration stored = NewMigration(130);
  const auto transition =
      migration::Handle(stored.plan, stored.record, Order{.verb = Verb::kPlan}, 7);
  const auto written = store->Txn(CreationOf(stored, transition, 0));
  ASSERT_TRUE(written.ok() && written.value().succeeded);
  std::string problem;
  const StoredMigration read = ReadMigration("m", RowsOf(*store), problem);
  EXPECT_EQ(problem, "");
  EXPECT_EQ(read.revision, written.value().revision);
  EXPECT_EQ(read.record.nodes.size(), 130U);
  EXPECT_EQ(HashOf(read.plan), HashOf(stored.plan));
}

TEST(StoredMigration, TheLargestPlanFitsOneTransaction) {
  StoredMigration stored = NewMigration(kMostDrivenNodes);
  const auto transition =
      migration::Handle(stored.plan, stored.record, Order{.verb = Verb::kPlan}, 7);
  // The longest values that a node's record can have.
  for (migration::NodeRecord& node : stored.record.nodes) {
    node.reason = std::string(600, 'r');
    node.backup_hash = std::string(71, 'h');
    node.switched_hash = std::string(71, 'h');
    node.activity = migration::Activity::kForward;
    node.pending = migration::PendingCommand{.id = 0};
  }
  EXPECT_EQ(CreationOf(stored, transition, 0).Validate().text(), "");
}

TEST(StoredMigration, TwoWritersOfOneRecordCannotBothGoOn) {
  const auto store = store::NewMemoryStore();
  StoredMigration stored = NewMigration(3);
  const auto transition =
      migration::Handle(stored.plan, stored.record, Order{.verb = Verb::kPlan}, 7);
  stored.revision = store->Txn(CreationOf(stored, transition, 0))->revision;
  StoredStep first = StepAfter(stored, migration::TakeOver{}, 8);
  StoredStep second = StepAfter(stored, Order{.verb = Verb::kAbort, .who = "alice"}, 8);
  EXPECT_TRUE(store->Txn(std::move(first.transaction))->succeeded);
  EXPECT_FALSE(store->Txn(std::move(second.transaction))->succeeded);
}

// Two persons start a migration of one cluster at the same time; both calls found no other one.
TEST(StoredMigration, C15_ASecondMigrationOfTheClusterIsNotCreated) {
  const auto store = store::NewMemoryStore();
  StoredMigration first = NewMigration(3);
  StoredMigration second = NewMigration(3);
  second.id = "other";
  const auto plan = [](StoredMigration& stored) {
    return migration::Handle(stored.plan, stored.record, Order{.verb = Verb::kPlan}, 7);
  };
  EXPECT_TRUE(store->Txn(CreationOf(first, plan(first), 0))->succeeded);
  EXPECT_FALSE(store->Txn(CreationOf(second, plan(second), 0))->succeeded);
  for (const store::Entry& entry : RowsOf(*store)) EXPECT_EQ(IdOfKey(entry.key), "m");
}

// A creation has read the first migration as ABORTED; before it writes, the first one goes back.
TEST(StoredMigration, C15_ASecondMigrationIsNotCreatedBesideOneThatGoesBack) {
  for (const bool creation_is_first : {false, true}) {
    const auto store = store::NewMemoryStore();
    StoredMigration first = NewMigration(3);
    const auto planned = migration::Handle(first.plan, first.record, Order{.verb = Verb::kPlan}, 7);
    first.record.state = migration::MigrationState::kAborted;
    first.record.nodes[0].state = migration::NodeState::kDone;
    first.record.nodes[0].furthest = 8;
    first.revision = store->Txn(CreationOf(first, planned, 0))->revision;
    ASSERT_TRUE(HasEnded(first.record));
    StoredMigration second = NewMigration(3);
    second.id = "other";
    const auto transition =
        migration::Handle(second.plan, second.record, Order{.verb = Verb::kPlan}, 8);
    const store::Transaction creation = CreationOf(second, transition, first.revision);
    StoredStep back = StepAfter(first, Order{.verb = Verb::kRollback, .who = "alice"}, 8);
    ASSERT_EQ(back.transition.refusal, "");
    ASSERT_FALSE(HasEnded(back.after));
    if (creation_is_first) {
      EXPECT_TRUE(store->Txn(creation)->succeeded);
      EXPECT_FALSE(store->Txn(back.transaction)->succeeded);
    } else {
      EXPECT_TRUE(store->Txn(back.transaction)->succeeded);
      EXPECT_FALSE(store->Txn(creation)->succeeded);
    }
  }
}

TEST(StoredMigration, MissingAndForeignRowsAreProblems) {
  const auto store = store::NewMemoryStore();
  StoredMigration stored = NewMigration(130);
  const auto transition =
      migration::Handle(stored.plan, stored.record, Order{.verb = Verb::kPlan}, 7);
  ASSERT_TRUE(store->Txn(CreationOf(stored, transition, 0))->succeeded);
  const std::vector<store::Entry> rows = RowsOf(*store);
  ASSERT_EQ(rows.size(), 5U);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string problem;
    std::vector<store::Entry> without = rows;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    (void)ReadMigration("m", without, problem);
    EXPECT_NE(problem, "") << "without " << rows[i].key;
    std::vector<store::Entry> foreign = rows;
    foreign[i].value = "[[1],{}]";
    (void)ReadMigration("m", foreign, problem);
    EXPECT_NE(problem, "") << "foreign " << rows[i].key;
  }
}

TEST(StoredMigration, ADeletionLeavesNoRow) {
  const auto store = store::NewMemoryStore();
  StoredMigration stored = NewMigration(130);
  const auto transition =
      migration::Handle(stored.plan, stored.record, Order{.verb = Verb::kPlan}, 7);
  stored.revision = store->Txn(CreationOf(stored, transition, 0))->revision;
  EXPECT_TRUE(store->Txn(DeletionOf(stored))->succeeded);
  EXPECT_TRUE(RowsOf(*store).empty());
  // The name is free again, and so is the cluster.
  auto cluster = store->Range({.range = store::KeyRange::Key(ClusterKey("c1"))});
  ASSERT_EQ(cluster->entries.size(), 1U);
  EXPECT_TRUE(
      store->Txn(CreationOf(stored, transition, cluster->entries[0].mod_revision))->succeeded);
}

TEST(StoredMigration, OldEventsAreRemoved) {
  StoredMigration stored = NewMigration(3);
  stored.record.transitions = kKeptTransitions;
  const StoredStep step = StepAfter(stored, migration::TakeOver{}, 8);
  size_t deletions = 0;
  for (const store::Operation& operation : step.transaction.then)
    deletions += operation.kind == store::Operation::Kind::kDelete ? 1U : 0U;
  EXPECT_EQ(deletions, 1U);
}

TEST(StoredMigration, AnIdleTickNeedsNoTransaction) {
  const StoredMigration stored = NewMigration(3);
  EXPECT_TRUE(StepAfter(stored, migration::Tick{}, 8).idle);
  EXPECT_FALSE(StepAfter(stored, migration::TakeOver{}, 8).idle);
}

}  // namespace
}  // namespace rocegw::migrations
