// SPDX-License-Identifier: Apache-2.0
// Rows of an upgrade in a store.
#include "controlplane/upgrades/stored_upgrade.h"

#include <gtest/gtest.h>

#include "controlplane/store/local/memory_store.h"
#include "controlplane/store/store.h"

namespace rocegw::upgrades {
namespace {

StoredUpgrade NewUpgrade(const std::string& id, size_t gateways) {
  StoredUpgrade stored{.id = id, .upgrade = {}};
  stored.upgrade.set_name("upgrades/" + id);
  std::vector<std::string> names;
  for (size_t i = 0; i < gateways; ++i)
    names.push_back("gateways/" + std::string(50, 'g') + std::to_string(100000 + i));
  EXPECT_EQ(Plan(names, 1, stored.upgrade), "");
  return stored;
}

class StoredUpgradeTest : public ::testing::Test {
 protected:
  bool Write(store::Transaction transaction) {
    auto written = store_->Txn(std::move(transaction));
    EXPECT_TRUE(written.ok()) << written.status().text();
    return written.ok() && written->succeeded;
  }
  StoredUpgrade Read(const std::string& id) {
    auto rows = store_->Range({.range = store::KeyRange::Prefix(PrefixOf(id))});
    EXPECT_TRUE(rows.ok());
    return ReadUpgrade(id, rows->entries, problem_);
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  std::string problem_;
};

TEST_F(StoredUpgradeTest, TheLargestUpgradeIsOneTransactionAndIsReadAsItWas) {
  const StoredUpgrade stored = NewUpgrade("u", kMostGateways);
  ASSERT_TRUE(Write(CreationOf(stored)));
  const StoredUpgrade read = Read("u");
  EXPECT_EQ(problem_, "");
  EXPECT_EQ(read.upgrade.SerializeAsString(), stored.upgrade.SerializeAsString());
}

TEST_F(StoredUpgradeTest, AStepWritesTheRowsOfItsGatewaysOnly) {
  ASSERT_TRUE(Write(CreationOf(NewUpgrade("u", 100))));
  const StoredUpgrade stored = Read("u");
  admin::v1::Upgrade after = stored.upgrade;
  types::v1::GatewayStatus status;
  status.set_version("0.1");
  const Step step = BeginReplacement(0, status, 2, after);
  store::Transaction transaction = StepOf(stored, after, step);
  EXPECT_EQ(transaction.then.size(), 2U);
  ASSERT_TRUE(Write(transaction));
  EXPECT_EQ(Read("u").upgrade.gateways(0).version_before(), "0.1");
  // A second writer that has read the same state is refused.
  EXPECT_FALSE(Write(transaction));
}

TEST_F(StoredUpgradeTest, AStepDoesNotWriteTheNamesOfTheSpecAgain) {
  StoredUpgrade created = NewUpgrade("u", 100);
  for (int i = 0; i < 2000; ++i)
    created.upgrade.mutable_spec()->add_gateways("gateways/" + std::to_string(i));
  ASSERT_TRUE(Write(CreationOf(created)));
  const StoredUpgrade stored = Read("u");
  admin::v1::Upgrade after = stored.upgrade;
  Step step;
  ASSERT_EQ(Give(admin::v1::PAUSE_UPGRADE, "anna", 2, after, step), "");
  const store::Transaction transaction = StepOf(stored, after, step);
  ASSERT_EQ(transaction.then.size(), 1U);
  EXPECT_LT(transaction.then[0].value.size(), 1000U);
  ASSERT_TRUE(Write(transaction));
  EXPECT_EQ(Read("u").upgrade.spec().gateways_size(), 2000);
}

TEST_F(StoredUpgradeTest, TwoUpgradesExcludeEachOtherUntilOneHasEnded) {
  ASSERT_TRUE(Write(CreationOf(NewUpgrade("u", 1))));
  EXPECT_FALSE(Write(CreationOf(NewUpgrade("v", 1))));
  StoredUpgrade stored = Read("u");
  admin::v1::Upgrade after = stored.upgrade;
  Step step;
  ASSERT_EQ(Give(admin::v1::ABORT_UPGRADE, "anna", 2, after, step), "");
  ASSERT_TRUE(Write(StepOf(stored, after, step)));
  stored = Read("u");
  const Step end = Advance([](const std::string&) { return HostState(); }, {.now = 3}, after);
  ASSERT_EQ(after.state(), admin::v1::Upgrade::ABORTED);
  ASSERT_TRUE(Write(StepOf(stored, after, end)));
  EXPECT_TRUE(Write(CreationOf(NewUpgrade("v", 1))));
}

TEST_F(StoredUpgradeTest, ADeletedUpgradeLeavesNoRow) {
  ASSERT_TRUE(Write(CreationOf(NewUpgrade("u", 100))));
  ASSERT_TRUE(Write(DeletionOf(Read("u"))));
  (void)Read("u");
  EXPECT_EQ(problem_, "its rows are not complete");
  auto rows = store_->Range({.range = store::KeyRange::Prefix(kUpgradePrefix)});
  ASSERT_TRUE(rows.ok());
  EXPECT_TRUE(rows->entries.empty());
}

TEST_F(StoredUpgradeTest, DamagedRowsAreNoUpgrade) {
  ASSERT_TRUE(Write(CreationOf(NewUpgrade("u", 40))));
  auto rows = store_->Range({.range = store::KeyRange::Prefix(PrefixOf("u"))});
  ASSERT_TRUE(rows.ok());
  std::vector<store::Entry> entries = rows->entries;
  entries[0].value = "\xff\xff";
  (void)ReadUpgrade("u", entries, problem_);
  EXPECT_NE(problem_, "");
  entries = rows->entries;
  entries.erase(entries.begin());
  (void)ReadUpgrade("u", entries, problem_);
  EXPECT_EQ(problem_, "its rows are not complete");
  // Without its spec it could not be driven.
  entries = rows->entries;
  std::erase_if(entries, [](const store::Entry& entry) { return entry.key.ends_with("/spec"); });
  ASSERT_EQ(entries.size() + 1, rows->entries.size());
  (void)ReadUpgrade("u", entries, problem_);
  EXPECT_EQ(problem_, "its rows are not complete");
}

}  // namespace
}  // namespace rocegw::upgrades
