// SPDX-License-Identifier: Apache-2.0
// Gateways whose migration has not ended.
#include "controlplane/server/migrated_gateways.h"

#include <gtest/gtest.h>

#include "controlplane/migrations/stored_migration.h"
#include "controlplane/store/local/memory_store.h"
#include "tests/support/migration/plans.h"

namespace rocegw::server {
namespace {

TEST(MigratedGateways, AreTheNodesOfMigrationsThatHaveNotEnded) {
  const auto store = store::NewMemoryStore();
  const auto put = [&](const std::string& id, const std::string& cluster, bool aborted) {
    migrations::StoredMigration stored{.id = id, .plan = migration::TestPlan({.nodes = 3})};
    stored.plan.name = id;
    stored.plan.cluster = cluster;
    for (migration::PlannedNode& node : stored.plan.nodes) node.name = id + "-" + node.name;
    stored.record = migration::NewRecord(stored.plan);
    auto transition = migration::Handle(stored.plan, stored.record,
                                        migration::Order{.verb = migration::Verb::kPlan}, 7);
    if (aborted) stored.record.state = migration::MigrationState::kAborted;
    const auto written = store->Txn(migrations::CreationOf(stored, transition, 0));
    ASSERT_TRUE(written.ok() && written.value().succeeded);
    std::string problem;
    (void)migrations::ReadMigration(
        id, store->Range({.range = store::KeyRange::Prefix(migrations::PrefixOf(id))})->entries,
        problem);
    ASSERT_EQ(problem, "");
  };
  put("m", "c1", false);
  put("ended", "c2", true);
  store::Transaction damaged;
  damaged.then = {store::Operation::Put(migrations::HeadKey("damaged"), "{")};
  ASSERT_TRUE(store->Txn(damaged).ok());
  const auto gateways = MigratedGateways(
      store->Range({.range = store::KeyRange::Prefix(migrations::kMigrationPrefix)})->entries);
  ASSERT_EQ(gateways.size(), 3U);
  for (const auto& [gateway, migration] : gateways) {
    EXPECT_TRUE(gateway.starts_with("gateways/m-")) << gateway;
    EXPECT_EQ(migration, "migrations/m");
  }
}

}  // namespace
}  // namespace rocegw::server
