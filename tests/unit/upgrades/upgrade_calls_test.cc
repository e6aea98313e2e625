// SPDX-License-Identifier: Apache-2.0
// Calls that create, order and delete upgrades: repetitions, rows that cannot be read, gateways of
// migrations.
#include "controlplane/upgrades/upgrade_calls.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <utility>

#include "controlplane/api/driving/gateway_orders.h"
#include "controlplane/store/local/memory_store.h"
#include "controlplane/upgrades/upgrading_gateways.h"
#include "tests/support/api/unary_answer.h"

namespace rocegw::upgrades {
namespace {

using admin::v1::Upgrade;

constexpr char kUuid[] = "123e4567-e89b-12d3-a456-426614174000";
constexpr char kOtherUuid[] = "123e4567-e89b-12d3-a456-426614174001";

class UpgradeCallsTest : public ::testing::Test {
 protected:
  static api::Call CallOf(const std::string& method, const std::string& request_id,
                          const std::string& digest) {
    return {.principal = "anna",
            .peer = "test",
            .method = method,
            .request_id = request_id,
            .request_digest = digest,
            .request_json = "{}",
            .etag_before = {}};
  }
  grpc::Status Create(const std::string& id, const std::string& request_id,
                      const std::string& digest = "digest") {
    StoredUpgrade wanted{.id = id, .upgrade = {}};
    wanted.upgrade.set_name("upgrades/" + id);
    wanted.upgrade.set_principal("anna");
    EXPECT_EQ(Plan({"gateways/g0", "gateways/g1"}, 1, wanted.upgrade), "");
    return testing::UnaryAnswer([&](grpc::ServerUnaryReactor* reactor) {
      std::make_shared<CreateCall>(*store_, wanted, CallOf("create", request_id, digest), 64,
                                   migrated_, reactor, &upgrade_)
          ->Start();
    });
  }
  grpc::Status Delete(const std::string& id) {
    return testing::UnaryAnswer([&](grpc::ServerUnaryReactor* reactor) {
      std::make_shared<OrderCall>(*store_, "upgrades/" + id, CallOf("delete", {}, id),
                                  OrderCall::Order(), reactor, nullptr)
          ->Start();
    });
  }
  void Put(const std::string& key, const std::string& value) {
    store::Transaction transaction;
    transaction.then = {store::Operation::Put(key, value)};
    ASSERT_TRUE(store_->Txn(std::move(transaction)).ok());
  }
  size_t RowsOf(std::string_view prefix) {
    return store_->Range({.range = store::KeyRange::Prefix(prefix)})->entries.size();
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  Migrated migrated_;
  Upgrade upgrade_;
};

TEST_F(UpgradeCallsTest, ARepetitionReturnsTheUpgrade) {
  ASSERT_TRUE(Create("u", kUuid).ok());
  upgrade_.Clear();
  ASSERT_TRUE(Create("u", kUuid).ok());
  EXPECT_EQ(upgrade_.gateways_size(), 2);
}

TEST_F(UpgradeCallsTest, AnotherCallWithTheSameNameAndSpecIsNoRepetition) {
  ASSERT_TRUE(Create("u", kUuid).ok());
  EXPECT_EQ(Create("u", kOtherUuid).error_code(), grpc::ALREADY_EXISTS);
  EXPECT_EQ(Create("u", {}).error_code(), grpc::ALREADY_EXISTS);
}

TEST_F(UpgradeCallsTest, ARequestIdIsNotForAnotherRequest) {
  ASSERT_TRUE(Create("u", kUuid).ok());
  const grpc::Status status = Create("u", kUuid, "another digest");
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.error_code(), grpc::ALREADY_EXISTS);
}

TEST_F(UpgradeCallsTest, AnUpgradeInProgressIsNotDeleted) {
  ASSERT_TRUE(Create("u", kUuid).ok());
  EXPECT_EQ(Delete("u").error_code(), grpc::FAILED_PRECONDITION);
}

TEST_F(UpgradeCallsTest, AnUpgradeThatCannotBeReadIsDeletedAndFreesTheFleet) {
  ASSERT_TRUE(Create("u", kUuid).ok());
  Put(HeadKey("u"), "\xff\xff");
  ASSERT_TRUE(Delete("u").ok());
  EXPECT_EQ(RowsOf(PrefixOf("u")), 0U);
  EXPECT_EQ(RowsOf(kActiveKey), 0U);
  EXPECT_TRUE(Create("v", kOtherUuid).ok());
}

TEST_F(UpgradeCallsTest, TheDeletionOfOneThatCannotBeReadLeavesTheOneInProgress) {
  ASSERT_TRUE(Create("u", kUuid).ok());
  Put(HeadKey("v"), "\xff\xff");
  ASSERT_TRUE(Delete("v").ok());
  EXPECT_EQ(RowsOf(PrefixOf("v")), 0U);
  EXPECT_EQ(store_->Get(kActiveKey)->value().value, "u");
}

TEST_F(UpgradeCallsTest, AGatewayOfAMigrationIsNotUpgraded) {
  Put("migration/m/head", "g1");
  migrated_ = {.prefix = "migration/", .read = [](const std::vector<store::Entry>& entries) {
                 std::map<std::string, std::string> gateways;
                 for (const store::Entry& entry : entries)
                   gateways["gateways/" + entry.value] = "migrations/m";
                 return gateways;
               }};
  const grpc::Status status = Create("u", kUuid);
  EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_NE(status.error_message().find("gateways/g1 is a node of migrations/m"),
            std::string::npos);
  EXPECT_EQ(RowsOf(kUpgradePrefix), 0U);
  Put("migration/m/head", "g7");
  EXPECT_TRUE(Create("u", kUuid).ok());
}

TEST_F(UpgradeCallsTest, AMigrationThatBeginsMeanwhileIsSeen) {
  bool began = false;
  migrated_ = {.prefix = "migration/", .read = [&](const std::vector<store::Entry>& entries) {
                 std::map<std::string, std::string> gateways;
                 for (const store::Entry& entry : entries)
                   gateways["gateways/" + entry.value] = "migrations/m";
                 // The migration is stored behind this look.
                 if (!std::exchange(began, true)) {
                   store::Transaction order;
                   order.then = {store::Operation::Put("migration/m/head", "g1")};
                   api::ExcludeOrdersSince(std::nullopt, "migrations/m", order);
                   EXPECT_TRUE(store_->Txn(std::move(order))->succeeded);
                 }
                 return gateways;
               }};
  const grpc::Status status = Create("u", kUuid);
  EXPECT_NE(status.error_message().find("gateways/g1 is a node of migrations/m"),
            std::string::npos);
  EXPECT_EQ(RowsOf(kUpgradePrefix), 0U);
}

TEST_F(UpgradeCallsTest, AMigrationSeesAnUpgradeThatBeginsMeanwhile) {
  auto read = store_->Get(api::kGatewayOrdersKey);
  ASSERT_TRUE(read.ok());
  ASSERT_TRUE(Create("u", kUuid).ok());
  store::Transaction order;
  order.then = {store::Operation::Put("migration/m/head", "g1")};
  api::ExcludeOrdersSince(*read, "migrations/m", order);
  EXPECT_FALSE(store_->Txn(std::move(order))->succeeded);

  const auto upgrading = [&] {
    return UpgradingGateways(
        store_->Range({.range = store::KeyRange::Prefix(kUpgradePrefix)})->entries);
  };
  EXPECT_EQ(upgrading(), (std::map<std::string, std::string>{{"gateways/g0", "upgrades/u"},
                                                             {"gateways/g1", "upgrades/u"}}));
  Put(HeadKey("u"), "\xff\xff");
  EXPECT_TRUE(upgrading().empty());
}

TEST_F(UpgradeCallsTest, AnUpgradeThatHasEndedHoldsNoGateway) {
  ASSERT_TRUE(Create("u", kUuid).ok());
  ASSERT_TRUE(testing::UnaryAnswer([&](grpc::ServerUnaryReactor* reactor) {
                std::make_shared<OrderCall>(
                    *store_, "upgrades/u", CallOf("control", {}, "abort"),
                    [](Upgrade& upgrade, Step& step) -> std::optional<api::ApiError> {
                      EXPECT_EQ(Give(admin::v1::ABORT_UPGRADE, "anna", 2, upgrade, step), "");
                      const auto nowhere = [](const std::string&) { return HostState(); };
                      step = Advance(nowhere, {.now = 2}, upgrade);
                      return std::nullopt;
                    },
                    reactor, &upgrade_)
                    ->Start();
              }).ok());
  ASSERT_EQ(upgrade_.state(), Upgrade::ABORTED);
  EXPECT_TRUE(
      UpgradingGateways(store_->Range({.range = store::KeyRange::Prefix(kUpgradePrefix)})->entries)
          .empty());
}

}  // namespace
}  // namespace rocegw::upgrades
