// SPDX-License-Identifier: Apache-2.0
// Calls that write a migration, each from its admission to its answer. An object lives until its
// call is answered. gRPC's and the store's threads, one at a time.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "controlplane/api/calls/call.h"
#include "controlplane/migrations/stored_migration.h"
#include "rocegw/admin/v1/migrations.pb.h"

namespace rocegw::migrations {

// Reader of upgrades, whose gateways change their versions: steps of a migration compare them.
struct Upgraded {
  std::string prefix;  // the keys of all upgrades begin with it
  // Returns the gateways of upgrades that have not ended ("gateways/G"), each with its upgrade.
  // `entries`: all below the prefix. Unset: no upgrade is looked for.
  std::function<std::map<std::string, std::string>(const std::vector<store::Entry>& entries)> read;
};

// Returns why the nodes of a plan cannot be migrated now; nullopt: none of them is being upgraded.
std::optional<api::ApiError> WhyNotBesideUpgrade(const migration::Plan& plan,
                                                 const Upgraded& upgraded,
                                                 const std::vector<store::Entry>& entries);

// Error of a migration whose rows cannot be read.
api::ApiError Unreadable(const std::string& name, const std::string& problem);

// The row of api::kGatewayOrdersKey as it was read.
using NewestOrder = std::optional<store::Entry>;

using OrderOrError = std::variant<migration::Order, api::ApiError>;

// Carries out a person's order as one transaction, again after a conflict.
class OrderCall : public std::enable_shared_from_this<OrderCall> {
 public:
  OrderCall(store::Store& store, std::string name, api::Call call,
            std::function<OrderOrError(const StoredMigration&)> order, Upgraded upgraded,
            grpc::ServerUnaryReactor* reactor, admin::v1::Migration* response);
  void Start();

 private:
  void OnRows(const StatusOr<store::RangeResult>& rows);
  // Gives the order to the stored record.
  void Decide(StoredMigration stored);
  // An order that makes nodes change looks for upgrades first.
  void LookForUpgrades(StoredMigration stored, StoredStep step, bool revives);
  // `stored`: with the record after the step. `orders`: read before upgrades were looked for;
  // nullptr: none were.
  void Write(StoredMigration stored, const StoredStep& step, bool revives,
             const NewestOrder* orders);
  // `request`: record of this call's request_id, if there is one. `revives`: the migration had
  // ended, and its cluster may have a later one.
  void OnConflict(const std::optional<store::Entry>& request, bool revives);
  // Answers a call that was carried out before under its request_id; else with the refusal.
  void RefuseOrAnswer(const StoredMigration& stored, const std::string& refusal);
  void Answer(const StoredMigration& stored);
  void Refuse(const api::ApiError& error);

  store::Store& store_;
  const std::string name_;
  const std::string id_;
  const api::Call call_;
  const std::function<OrderOrError(const StoredMigration&)> order_;
  const Upgraded upgraded_;
  grpc::ServerUnaryReactor* const reactor_;
  admin::v1::Migration* const response_;
  int tries_ = 0;
  bool carried_out_ = false;  // by an earlier call with the same request_id
};

// Creates a migration from a plan that was read.
class CreateCall : public std::enable_shared_from_this<CreateCall> {
 public:
  CreateCall(store::Store& store, StoredMigration wanted, api::Call call, size_t most,
             Upgraded upgraded, grpc::ServerUnaryReactor* reactor, admin::v1::Migration* response);
  void Start();

 private:
  void OnKeys(const StatusOr<store::RangeResult>& keys);
  void OnExisting(const StatusOr<store::RangeResult>& rows);
  void OnCluster(const StatusOr<store::TransactionResult>& result);
  void OnOther(const StatusOr<store::RangeResult>& rows, const std::string& other);
  void LookForUpgrades();
  void Write();
  void Refuse(const api::ApiError& error);

  store::Store& store_;
  StoredMigration wanted_;
  const api::Call call_;
  const size_t most_;
  const Upgraded upgraded_;
  grpc::ServerUnaryReactor* const reactor_;
  admin::v1::Migration* const response_;
  store::Revision cluster_revision_ = 0;
  NewestOrder orders_;
  int tries_ = 0;
};

}  // namespace rocegw::migrations
