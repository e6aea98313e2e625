// SPDX-License-Identifier: Apache-2.0
// Calls that create and steer migrations beside an upgrade of the same gateways, and migrations
// whose rows cannot be read.
#include "controlplane/migrations/order_call.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <utility>

#include "controlplane/model/timestamp.h"
#include "controlplane/store/local/memory_store.h"
#include "tests/support/api/unary_answer.h"
#include "tests/support/migration/plans.h"

namespace rocegw::migrations {
namespace {

using migration::Order;
using migration::Verb;

constexpr char kUpgradeKey[] = "upgrade/u/head";

class OrderCallTest : public ::testing::Test {
 protected:
  grpc::Status Create() {
    StoredMigration wanted{.id = "m", .plan = migration::TestPlan({.nodes = 3})};
    wanted.record = migration::NewRecord(wanted.plan);
    return testing::UnaryAnswer([&](grpc::ServerUnaryReactor* reactor) {
      std::make_shared<CreateCall>(*store_, wanted, api::Call{.principal = "anna"}, 64, upgraded_,
                                   reactor, &migration_)
          ->Start();
    });
  }
  grpc::Status Give(Verb verb) {
    return testing::UnaryAnswer([&](grpc::ServerUnaryReactor* reactor) {
      std::make_shared<OrderCall>(
          *store_, "migrations/m", api::Call{.principal = "anna"},
          [verb](const StoredMigration&) -> OrderOrError { return Order{.verb = verb}; }, upgraded_,
          reactor, &migration_)
          ->Start();
    });
  }
  // Brings an event that no person gives.
  void Bring(const migration::Event& event) {
    auto rows = store_->Range({.range = store::KeyRange::Prefix(PrefixOf("m"))});
    std::string problem;
    const StoredMigration stored = ReadMigration("m", rows->entries, problem);
    ASSERT_EQ(problem, "");
    auto written = store_->Txn(StepAfter(stored, event, model::SecondsNow()).transaction);
    ASSERT_TRUE(written.ok() && written->succeeded);
  }
  void Put(const std::string& key, const std::string& value) {
    store::Transaction transaction;
    transaction.then = {store::Operation::Put(key, value)};
    ASSERT_TRUE(store_->Txn(std::move(transaction)).ok());
  }
  static std::map<std::string, std::string> Read(const std::vector<store::Entry>& entries) {
    std::map<std::string, std::string> gateways;
    for (const store::Entry& entry : entries) gateways["gateways/" + entry.value] = "upgrades/u";
    return gateways;
  }
  void ExpectRefused(const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION);
    EXPECT_NE(status.error_message().find("gateways/n2 is in upgrades/u"), std::string::npos)
        << status.error_message();
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  Upgraded upgraded_{.prefix = "upgrade/", .read = Read};
  admin::v1::Migration migration_;
};

TEST_F(OrderCallTest, GatewaysThatAreUpgradedAreNotPlanned) {
  Put(kUpgradeKey, "n2");
  ExpectRefused(Create());
  EXPECT_TRUE(store_->Range({.range = store::KeyRange::Prefix(kMigrationPrefix)})->entries.empty());
  Put(kUpgradeKey, "n7");
  EXPECT_TRUE(Create().ok());
}

TEST_F(OrderCallTest, AMigrationDoesNotStartBesideAnUpgrade) {
  ASSERT_TRUE(Create().ok());
  Bring(migration::PreflightResult{.passed = true});
  Put(kUpgradeKey, "n2");
  ExpectRefused(Give(Verb::kStart));
  // A preflight changes nothing at the nodes.
  EXPECT_TRUE(Give(Verb::kPreflight).ok());
  Bring(migration::PreflightResult{.passed = true});
  Put(kUpgradeKey, "n7");
  EXPECT_TRUE(Give(Verb::kStart).ok());
  EXPECT_EQ(migration_.state(), "RUNNING");
}

TEST_F(OrderCallTest, AMigrationThatRunsIsSteeredBesideAnUpgrade) {
  ASSERT_TRUE(Create().ok());
  Bring(migration::PreflightResult{.passed = true});
  ASSERT_TRUE(Give(Verb::kStart).ok());
  // Both began in the same moment: the way out stays open.
  Put(kUpgradeKey, "n2");
  EXPECT_TRUE(Give(Verb::kPause).ok());
  EXPECT_TRUE(Give(Verb::kAbort).ok());
}

TEST_F(OrderCallTest, AMigrationThatCannotBeReadIsSaidToBeSo) {
  Put(HeadKey("m"), "{");
  EXPECT_EQ(Give(Verb::kStart).error_code(), grpc::DATA_LOSS);
}

}  // namespace
}  // namespace rocegw::migrations
