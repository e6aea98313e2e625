// SPDX-License-Identifier: Apache-2.0
#include "controlplane/upgrades/upgrade_calls.h"

#include <utility>

#include "controlplane/api/calls/audit_note.h"
#include "controlplane/api/calls/request_record.h"
#include "controlplane/api/driving/gateway_orders.h"
#include "controlplane/model/timestamp.h"

namespace rocegw::upgrades {
namespace {

using admin::v1::Upgrade;

constexpr int kMostTries = 8;

// Adds the audit record of the call and the record of its request_id.
void AddRecords(const api::Call& call, const std::string& id, store::Transaction& transaction) {
  transaction.then.push_back(api::AuditOf(call, "upgrades/" + id));
  api::AddRequestRecord(call, transaction);
}

}  // namespace

api::ApiError Unreadable(const std::string& name, const std::string& problem) {
  return {grpc::StatusCode::DATA_LOSS, "UPGRADE_UNREADABLE", name + ": " + problem, {}, {}};
}

OrderCall::OrderCall(store::Store& store, std::string name, api::Call call, Order order,
                     grpc::ServerUnaryReactor* reactor, Upgrade* response)
    : store_(store),
      name_(std::move(name)),
      id_(name_.substr(name_.find('/') + 1)),
      call_(std::move(call)),
      order_(std::move(order)),
      reactor_(reactor),
      response_(response) {}

void OrderCall::Refuse(const api::ApiError& error) { reactor_->Finish(api::ToStatus(error)); }

void OrderCall::Answer(const Upgrade& upgrade) {
  if (response_ != nullptr) {
    *response_ = upgrade;
    *response_->mutable_read_time() = model::Now();
  }
  reactor_->Finish(grpc::Status::OK);
}

void OrderCall::Start() {
  store_.RangeAsync({.range = store::KeyRange::Prefix(PrefixOf(id_))},
                    [self = shared_from_this()](const auto& rows) { self->OnRows(rows); });
}

void OrderCall::OnRows(const StatusOr<store::RangeResult>& rows) {
  if (!rows.ok()) return Refuse(api::FromStore(rows.status()));
  if (rows.value().entries.empty()) return RefuseUnlessRepeated(api::NotFound(name_));
  std::string problem;
  const StoredUpgrade stored = ReadUpgrade(id_, rows.value().entries, problem);
  if (problem.empty()) return Write(stored);
  if (order_) return Refuse(Unreadable(name_, problem));
  DeleteUnreadable(rows.value().entries);
}

void OrderCall::DeleteUnreadable(const std::vector<store::Entry>& entries) {
  store::Transaction read;
  read.then = {store::Operation::Get(kActiveKey)};
  store_.TxnAsync(std::move(read), [self = shared_from_this(), entries](const auto& result) {
    if (!result.ok()) return self->Refuse(api::FromStore(result.status()));
    self->Commit(DeletionOfUnreadable(self->id_, entries, result.value().results.at(0).entry), {});
  });
}

void OrderCall::Write(const StoredUpgrade& stored) {
  if (carried_out_) return Answer(stored.upgrade);
  Upgrade after = stored.upgrade;
  Step step;
  store::Transaction transaction;
  if (order_) {
    if (const auto error = order_(after, step)) return RefuseUnlessRepeated(*error);
    transaction = StepOf(stored, after, step);
    transaction.then.push_back(AuditOfChanges(id_, call_.peer, step));
  } else {
    if (!HasEnded(stored.upgrade)) {
      return Refuse(api::FailedPrecondition(
          "NOT_ENDED", name_ + " is " + Upgrade::State_Name(stored.upgrade.state()) +
                           ": only one that is DONE or ABORTED is deleted"));
    }
    transaction = DeletionOf(stored);
  }
  Commit(std::move(transaction), std::move(after));
}

void OrderCall::Commit(store::Transaction transaction, Upgrade after) {
  AddRecords(call_, id_, transaction);
  transaction.otherwise = {store::Operation::Get(api::RequestKey(call_))};
  store_.TxnAsync(std::move(transaction),
                  [self = shared_from_this(), after = std::move(after)](const auto& written) {
                    if (!written.ok()) return self->Refuse(api::FromStore(written.status()));
                    if (written.value().succeeded) return self->Answer(after);
                    self->OnConflict(written.value().results.at(0).entry);
                  });
}

bool OrderCall::AnswerRepetition(const std::optional<store::Entry>& request) {
  const auto record = api::ReadRequestRecord(request);
  if (call_.request_id.empty() || !record.has_value()) return false;
  if (const auto reused = api::RequestIdReused(call_, *record)) {
    Refuse(*reused);
  } else if (order_) {
    // The answer is the upgrade as it is now.
    carried_out_ = true;
    Start();
  } else {
    reactor_->Finish(grpc::Status::OK);
  }
  return true;
}

void OrderCall::OnConflict(const std::optional<store::Entry>& request) {
  if (AnswerRepetition(request)) return;
  // The driver was faster: the order is given to the newest state.
  if (++tries_ == kMostTries) return Refuse(api::TooManyConflicts());
  Start();
}

void OrderCall::RefuseUnlessRepeated(const api::ApiError& error) {
  if (call_.request_id.empty() || carried_out_) return Refuse(error);
  store::Transaction read;
  read.then = {store::Operation::Get(api::RequestKey(call_))};
  store_.TxnAsync(std::move(read), [self = shared_from_this(), error](const auto& result) {
    if (!result.ok()) return self->Refuse(api::FromStore(result.status()));
    if (!self->AnswerRepetition(result.value().results.at(0).entry)) self->Refuse(error);
  });
}

CreateCall::CreateCall(store::Store& store, StoredUpgrade wanted, api::Call call, size_t most,
                       Migrated migrated, grpc::ServerUnaryReactor* reactor, Upgrade* response)
    : store_(store),
      wanted_(std::move(wanted)),
      call_(std::move(call)),
      most_(most),
      migrated_(std::move(migrated)),
      reactor_(reactor),
      response_(response) {}

void CreateCall::Refuse(const api::ApiError& error) { reactor_->Finish(api::ToStatus(error)); }

void CreateCall::Start() {
  store_.RangeAsync({.range = store::KeyRange::Prefix(kUpgradePrefix), .keys_only = true},
                    [self = shared_from_this()](const auto& keys) { self->OnKeys(keys); });
}

void CreateCall::OnKeys(const StatusOr<store::RangeResult>& keys) {
  if (!keys.ok()) return Refuse(api::FromStore(keys.status()));
  size_t count = 0;
  for (const store::Entry& entry : keys.value().entries) {
    if (entry.key == HeadKey(wanted_.id)) {
      return store_.RangeAsync(
          {.range = store::KeyRange::Prefix(PrefixOf(wanted_.id))},
          [self = shared_from_this()](const auto& rows) { self->OnExisting(rows); });
    }
    count += entry.key == HeadKey(IdOfKey(entry.key)) ? 1U : 0U;
  }
  if (count >= most_) {
    return Refuse({grpc::StatusCode::RESOURCE_EXHAUSTED,
                   "TOO_MANY_UPGRADES",
                   "the fleet has " + std::to_string(count) +
                       " upgrades already: delete those that have ended",
                   {},
                   {}});
  }
  store::Transaction read;
  read.then = {store::Operation::Get(api::kGatewayOrdersKey)};
  store_.TxnAsync(std::move(read),
                  [self = shared_from_this()](const auto& result) { self->OnOrders(result); });
}

void CreateCall::OnOrders(const StatusOr<store::TransactionResult>& result) {
  if (!result.ok()) return Refuse(api::FromStore(result.status()));
  orders_ = result.value().results.at(0).entry;
  if (!migrated_.read) return Write();
  store_.RangeAsync({.range = store::KeyRange::Prefix(migrated_.prefix)},
                    [self = shared_from_this()](const auto& rows) { self->OnMigrations(rows); });
}

void CreateCall::OnMigrations(const StatusOr<store::RangeResult>& rows) {
  if (!rows.ok()) return Refuse(api::FromStore(rows.status()));
  const std::map<std::string, std::string> migrations = migrated_.read(rows.value().entries);
  for (const admin::v1::UpgradedGateway& gateway : wanted_.upgrade.gateways()) {
    const auto node = migrations.find(gateway.name());
    if (node == migrations.end()) continue;
    return Refuse(api::FailedPrecondition(
        "MIGRATION_IN_PROGRESS",
        gateway.name() + " is a node of " + node->second +
            ", which has not ended: its steps compare the gateway's version"));
  }
  Write();
}

void CreateCall::OnExisting(const StatusOr<store::RangeResult>& rows) {
  if (!rows.ok()) return Refuse(api::FromStore(rows.status()));
  const std::string name = "upgrades/" + wanted_.id;
  std::string problem;
  StoredUpgrade stored = ReadUpgrade(wanted_.id, rows.value().entries, problem);
  if (!problem.empty()) return Refuse(Unreadable(name, problem));
  if (call_.request_id.empty()) return Refuse(api::AlreadyExists(name));
  store::Transaction read;
  read.then = {store::Operation::Get(api::RequestKey(call_))};
  store_.TxnAsync(std::move(read), [self = shared_from_this(), name,
                                    upgrade = std::move(stored.upgrade)](const auto& result) {
    if (!result.ok()) return self->Refuse(api::FromStore(result.status()));
    // Only a record of this request_id shows that this call created it: an equal spec does not.
    const auto record = api::ReadRequestRecord(result.value().results.at(0).entry);
    if (!record.has_value()) return self->Refuse(api::AlreadyExists(name));
    if (const auto reused = api::RequestIdReused(self->call_, *record))
      return self->Refuse(*reused);
    self->Answer(upgrade);
  });
}

void CreateCall::Answer(const Upgrade& upgrade) {
  *response_ = upgrade;
  *response_->mutable_read_time() = model::Now();
  reactor_->Finish(grpc::Status::OK);
}

void CreateCall::Write() {
  store::Transaction transaction = CreationOf(wanted_);
  api::ExcludeOrdersSince(orders_, "upgrades/" + wanted_.id, transaction);
  AddRecords(call_, wanted_.id, transaction);
  transaction.otherwise = {store::Operation::Get(kActiveKey),
                           store::Operation::Get(api::RequestKey(call_))};
  store_.TxnAsync(std::move(transaction),
                  [self = shared_from_this()](const auto& written) { self->OnActive(written); });
}

void CreateCall::OnActive(const StatusOr<store::TransactionResult>& written) {
  if (!written.ok()) return Refuse(api::FromStore(written.status()));
  if (written.value().succeeded) return Answer(wanted_.upgrade);
  const auto& active = written.value().results.at(0).entry;
  if (active.has_value() && active->value != wanted_.id) {
    return Refuse(api::FailedPrecondition(
        "UPGRADE_IN_PROGRESS",
        "upgrades/" + active->value + " is in progress: a fleet has one at a time"));
  }
  if (const auto record = api::ReadRequestRecord(written.value().results.at(1).entry)) {
    if (const auto reused = api::RequestIdReused(call_, *record)) return Refuse(*reused);
  }
  if (++tries_ == kMostTries) return Refuse(api::TooManyConflicts());
  Start();
}

}  // namespace rocegw::upgrades
