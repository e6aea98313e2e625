// SPDX-License-Identifier: Apache-2.0
// Calls that write an upgrade, each from its admission to its answer, as one transaction with its
// audit records and the record of its request_id; again after a conflict. An object lives until its
// call is answered. gRPC's and the store's threads, one at a time.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/api/calls/call.h"
#include "controlplane/store/store.h"
#include "controlplane/upgrades/stored_upgrade.h"

namespace rocegw::upgrades {

// Returns the error of an upgrade whose rows cannot be read.
api::ApiError Unreadable(const std::string& name, const std::string& problem);

// Changes or deletes an upgrade that exists.
class OrderCall : public std::enable_shared_from_this<OrderCall> {
 public:
  // Changes the upgrade; returns why not, or nothing.
  using Order = std::function<std::optional<api::ApiError>(admin::v1::Upgrade&, Step&)>;

  // `order`: unset: the upgrade is deleted. `response`: nullptr for a deletion.
  OrderCall(store::Store& store, std::string name, api::Call call, Order order,
            grpc::ServerUnaryReactor* reactor, admin::v1::Upgrade* response);
  void Start();

 private:
  void OnRows(const StatusOr<store::RangeResult>& rows);
  void Write(const StoredUpgrade& stored);
  void DeleteUnreadable(const std::vector<store::Entry>& entries);
  // Adds the call's records, executes the transaction and answers with `after`.
  void Commit(store::Transaction transaction, admin::v1::Upgrade after);
  // `request`: record of this call's request_id, if there is one.
  void OnConflict(const std::optional<store::Entry>& request);
  void RefuseUnlessRepeated(const api::ApiError& error);
  // Answers from the record of a call with this request_id. Returns false if it is none.
  bool AnswerRepetition(const std::optional<store::Entry>& request);
  void Answer(const admin::v1::Upgrade& upgrade);
  void Refuse(const api::ApiError& error);

  store::Store& store_;
  const std::string name_;
  const std::string id_;
  const api::Call call_;
  const Order order_;
  grpc::ServerUnaryReactor* const reactor_;
  admin::v1::Upgrade* const response_;
  int tries_ = 0;
  bool carried_out_ = false;  // by an earlier call with the same request_id
};

// Reader of migrations, whose gateways an upgrade does not replace meanwhile.
struct Migrated {
  std::string prefix;  // the keys of all migrations begin with it
  // Returns the gateways that are nodes of migrations that have not ended, each with its migration.
  // `entries`: all below the prefix. Unset: no migration is looked for.
  std::function<std::map<std::string, std::string>(const std::vector<store::Entry>& entries)> read;
};

// Creates an upgrade that was planned.
class CreateCall : public std::enable_shared_from_this<CreateCall> {
 public:
  // `most`: upgrades that the store keeps.
  CreateCall(store::Store& store, StoredUpgrade wanted, api::Call call, size_t most,
             Migrated migrated, grpc::ServerUnaryReactor* reactor, admin::v1::Upgrade* response);
  void Start();

 private:
  void OnKeys(const StatusOr<store::RangeResult>& keys);
  void OnExisting(const StatusOr<store::RangeResult>& rows);
  void OnOrders(const StatusOr<store::TransactionResult>& result);
  void OnMigrations(const StatusOr<store::RangeResult>& rows);
  void OnActive(const StatusOr<store::TransactionResult>& result);
  void Write();
  void Answer(const admin::v1::Upgrade& upgrade);
  void Refuse(const api::ApiError& error);

  store::Store& store_;
  const StoredUpgrade wanted_;
  const api::Call call_;
  const size_t most_;
  const Migrated migrated_;
  grpc::ServerUnaryReactor* const reactor_;
  admin::v1::Upgrade* const response_;
  std::optional<store::Entry> orders_;  // as read before the migrations
  int tries_ = 0;
};

}  // namespace rocegw::upgrades
