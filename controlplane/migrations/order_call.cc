// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/order_call.h"

#include <utility>

#include "controlplane/api/calls/audit_note.h"
#include "controlplane/api/calls/request_record.h"
#include "controlplane/api/driving/gateway_orders.h"
#include "controlplane/migrations/migration_message.h"
#include "controlplane/migrations/transition_audit.h"
#include "controlplane/model/timestamp.h"

namespace rocegw::migrations {
namespace {

using model::SecondsNow;

constexpr int kMostTries = 8;

// Adds the audit records of the call and of what follows from it, and the record of its request_id.
void AddRecords(const api::Call& call, const std::string& id,
                const migration::Transition& transition, store::Transaction& transaction) {
  transaction.then.push_back(api::AuditOf(call, "migrations/" + id));
  transaction.then.push_back(AuditOfChanges(id, call.peer, transition));
  api::AddRequestRecord(call, transaction);
}

}  // namespace

std::optional<api::ApiError> WhyNotBesideUpgrade(const migration::Plan& plan,
                                                 const Upgraded& upgraded,
                                                 const std::vector<store::Entry>& entries) {
  const std::map<std::string, std::string> upgrades = upgraded.read(entries);
  for (const migration::PlannedNode& node : plan.nodes) {
    const auto found = upgrades.find("gateways/" + node.name);
    if (found == upgrades.end()) continue;
    return api::FailedPrecondition(
        "UPGRADE_IN_PROGRESS", found->first + " is in " + found->second +
                                   ", which has not ended and changes the gateway's version: wait "
                                   "for its end, or abort it");
  }
  return std::nullopt;
}

api::ApiError Unreadable(const std::string& name, const std::string& problem) {
  return {grpc::StatusCode::DATA_LOSS, "MIGRATION_UNREADABLE", name + ": " + problem, {}, {}};
}

OrderCall::OrderCall(store::Store& store, std::string name, api::Call call,
                     std::function<OrderOrError(const StoredMigration&)> order, Upgraded upgraded,
                     grpc::ServerUnaryReactor* reactor, admin::v1::Migration* response)
    : store_(store),
      name_(std::move(name)),
      id_(name_.substr(name_.find('/') + 1)),
      call_(std::move(call)),
      order_(std::move(order)),
      upgraded_(std::move(upgraded)),
      reactor_(reactor),
      response_(response) {}

void OrderCall::Refuse(const api::ApiError& error) { reactor_->Finish(api::ToStatus(error)); }

void OrderCall::Answer(const StoredMigration& stored) {
  *response_ = MessageOf(stored, Detail::kWhole, SecondsNow());
  reactor_->Finish(grpc::Status::OK);
}

void OrderCall::Start() {
  store_.RangeAsync({.range = store::KeyRange::Prefix(PrefixOf(id_))},
                    [self = shared_from_this()](const auto& rows) { self->OnRows(rows); });
}

void OrderCall::OnRows(const StatusOr<store::RangeResult>& rows) {
  if (!rows.ok()) return Refuse(api::FromStore(rows.status()));
  if (rows.value().entries.empty()) return Refuse(api::NotFound(name_));
  std::string problem;
  StoredMigration stored = ReadMigration(id_, rows.value().entries, problem);
  if (!problem.empty()) return Refuse(Unreadable(name_, problem));
  Decide(std::move(stored));
}

void OrderCall::Decide(StoredMigration stored) {
  if (carried_out_) return Answer(stored);
  OrderOrError made = order_(stored);
  if (const auto* error = std::get_if<api::ApiError>(&made)) return Refuse(*error);
  auto& order = std::get<migration::Order>(made);
  order.who = call_.principal;
  order.request_id = call_.request_id;
  StoredStep step = StepAfter(stored, order, SecondsNow());
  if (!step.transition.refusal.empty()) return RefuseOrAnswer(stored, step.transition.refusal);
  const bool revives = HasEnded(stored.record) && !HasEnded(step.after);
  if ((order.verb == migration::Verb::kStart || revives) && upgraded_.read)
    return LookForUpgrades(std::move(stored), std::move(step), revives);
  Write(std::move(stored), step, revives, nullptr);
}

void OrderCall::LookForUpgrades(StoredMigration stored, StoredStep step, bool revives) {
  const auto shared =
      std::make_shared<std::pair<StoredMigration, StoredStep>>(std::move(stored), std::move(step));
  store::Transaction read;
  read.then = {store::Operation::Get(api::kGatewayOrdersKey)};
  store_.TxnAsync(std::move(read), [self = shared_from_this(), shared,
                                    revives](const StatusOr<store::TransactionResult>& result) {
    if (!result.ok()) return self->Refuse(api::FromStore(result.status()));
    const auto orders = std::make_shared<const NewestOrder>(result.value().results.at(0).entry);
    self->store_.RangeAsync(
        {.range = store::KeyRange::Prefix(self->upgraded_.prefix)},
        [self, shared, revives, orders](const StatusOr<store::RangeResult>& rows) {
          if (!rows.ok()) return self->Refuse(api::FromStore(rows.status()));
          auto& [before, order] = *shared;
          if (const auto error =
                  WhyNotBesideUpgrade(before.plan, self->upgraded_, rows.value().entries))
            return self->Refuse(*error);
          self->Write(std::move(before), order, revives, orders.get());
        });
  });
}

void OrderCall::Write(StoredMigration stored, const StoredStep& step, bool revives,
                      const NewestOrder* orders) {
  store::Transaction transaction = step.transaction;
  if (orders != nullptr) api::ExcludeOrdersSince(*orders, name_, transaction);
  AddRecords(call_, id_, step.transition, transaction);
  stored.record = step.after;
  transaction.otherwise = {store::Operation::Get(api::RequestKey(call_))};
  const auto shared = std::make_shared<StoredMigration>(std::move(stored));
  store_.TxnAsync(std::move(transaction),
                  [self = shared_from_this(), shared, revives](const auto& written) {
                    if (!written.ok()) return self->Refuse(api::FromStore(written.status()));
                    if (written.value().succeeded) return self->Answer(*shared);
                    self->OnConflict(written.value().results.at(0).entry, revives);
                  });
}

void OrderCall::OnConflict(const std::optional<store::Entry>& request, bool revives) {
  if (const auto record = api::ReadRequestRecord(request)) {
    if (const auto reused = api::RequestIdReused(call_, *record)) return Refuse(*reused);
    // The same call was carried out before; its answer is the migration as it is now.
    carried_out_ = true;
    return Start();
  }
  // The driver was faster: the order is given to the newest record.
  if (++tries_ < kMostTries) return Start();
  if (!revives) return Refuse(api::TooManyConflicts());
  Refuse(api::FailedPrecondition("CLUSTER_IN_MIGRATION",
                                 "the cluster of " + name_ + " has a later migration"));
}

void OrderCall::RefuseOrAnswer(const StoredMigration& stored, const std::string& refusal) {
  const api::ApiError error = api::FailedPrecondition("NOT_NOW", name_ + ": " + refusal);
  if (call_.request_id.empty()) return Refuse(error);
  store::Transaction read;
  read.then = {store::Operation::Get(api::RequestKey(call_))};
  store_.TxnAsync(std::move(read), [self = shared_from_this(), stored, error](const auto& result) {
    if (!result.ok()) return self->Refuse(api::FromStore(result.status()));
    const auto record = api::ReadRequestRecord(result.value().results.at(0).entry);
    if (!record.has_value()) return self->Refuse(error);
    if (const auto reused = api::RequestIdReused(self->call_, *record))
      return self->Refuse(*reused);
    self->Answer(stored);
  });
}

CreateCall::CreateCall(store::Store& store, StoredMigration wanted, api::Call call, size_t most,
                       Upgraded upgraded, grpc::ServerUnaryReactor* reactor,
                       admin::v1::Migration* response)
    : store_(store),
      wanted_(std::move(wanted)),
      call_(std::move(call)),
      most_(most),
      upgraded_(std::move(upgraded)),
      reactor_(reactor),
      response_(response) {}

void CreateCall::Refuse(const api::ApiError& error) { reactor_->Finish(api::ToStatus(error)); }

void CreateCall::Start() {
  store_.RangeAsync({.range = store::KeyRange::Prefix(kMigrationPrefix), .keys_only = true},
                    [self = shared_from_this()](const auto& keys) { self->OnKeys(keys); });
}

void CreateCall::OnKeys(const StatusOr<store::RangeResult>& keys) {
  if (!keys.ok()) return Refuse(api::FromStore(keys.status()));
  size_t count = 0;
  bool exists = false;
  for (const store::Entry& entry : keys.value().entries) {
    exists = exists || entry.key == HeadKey(wanted_.id);
    count += entry.key == HeadKey(IdOfKey(entry.key)) ? 1U : 0U;
  }
  if (exists) {
    return store_.RangeAsync(
        {.range = store::KeyRange::Prefix(PrefixOf(wanted_.id))},
        [self = shared_from_this()](const auto& rows) { self->OnExisting(rows); });
  }
  if (count >= most_) {
    return Refuse({grpc::StatusCode::RESOURCE_EXHAUSTED,
                   "TOO_MANY_MIGRATIONS",
                   "the fleet has " + std::to_string(count) + " migrations already",
                   {},
                   {}});
  }
  store::Transaction read;
  read.then = {store::Operation::Get(ClusterKey(wanted_.plan.cluster)),
               store::Operation::Get(api::kGatewayOrdersKey)};
  store_.TxnAsync(std::move(read),
                  [self = shared_from_this()](const auto& result) { self->OnCluster(result); });
}

void CreateCall::OnExisting(const StatusOr<store::RangeResult>& rows) {
  if (!rows.ok()) return Refuse(api::FromStore(rows.status()));
  const std::string name = "migrations/" + wanted_.id;
  std::string problem;
  const StoredMigration stored = ReadMigration(wanted_.id, rows.value().entries, problem);
  if (!problem.empty()) return Refuse(Unreadable(name, problem));
  if (stored.record.plan_hash != wanted_.record.plan_hash) return Refuse(api::AlreadyExists(name));
  *response_ = MessageOf(stored, Detail::kWhole, SecondsNow());
  reactor_->Finish(grpc::Status::OK);
}

void CreateCall::OnCluster(const StatusOr<store::TransactionResult>& result) {
  if (!result.ok()) return Refuse(api::FromStore(result.status()));
  const auto& entry = result.value().results[0].entry;
  orders_ = result.value().results[1].entry;
  if (!entry.has_value()) return LookForUpgrades();
  cluster_revision_ = entry->mod_revision;
  store_.RangeAsync({.range = store::KeyRange::Prefix(PrefixOf(entry->value))},
                    [self = shared_from_this(), other = entry->value](const auto& rows) {
                      self->OnOther(rows, other);
                    });
}

void CreateCall::OnOther(const StatusOr<store::RangeResult>& rows, const std::string& other) {
  if (!rows.ok()) return Refuse(api::FromStore(rows.status()));
  std::string problem;
  const StoredMigration stored = ReadMigration(other, rows.value().entries, problem);
  const bool ended = rows.value().entries.empty() || (problem.empty() && HasEnded(stored.record));
  if (ended) return LookForUpgrades();
  Refuse(api::FailedPrecondition("CLUSTER_IN_MIGRATION",
                                 "cluster " + wanted_.plan.cluster + " is in migrations/" + other +
                                     " (" + std::string(WordOf(stored.record.state)) + ")"));
}

void CreateCall::LookForUpgrades() {
  if (!upgraded_.read) return Write();
  store_.RangeAsync({.range = store::KeyRange::Prefix(upgraded_.prefix)},
                    [self = shared_from_this()](const StatusOr<store::RangeResult>& rows) {
                      if (!rows.ok()) return self->Refuse(api::FromStore(rows.status()));
                      if (const auto error = WhyNotBesideUpgrade(
                              self->wanted_.plan, self->upgraded_, rows.value().entries))
                        return self->Refuse(*error);
                      self->Write();
                    });
}

void CreateCall::Write() {
  migration::Order order{.verb = migration::Verb::kPlan, .who = call_.principal};
  order.request_id = call_.request_id;
  StoredMigration stored = wanted_;
  const migration::Transition transition =
      migration::Handle(stored.plan, stored.record, order, SecondsNow());
  store::Transaction transaction = CreationOf(stored, transition, cluster_revision_);
  AddRecords(call_, stored.id, transition, transaction);
  if (upgraded_.read) api::ExcludeOrdersSince(orders_, "migrations/" + stored.id, transaction);
  const auto shared = std::make_shared<StoredMigration>(std::move(stored));
  store_.TxnAsync(std::move(transaction), [self = shared_from_this(), shared](const auto& written) {
    if (!written.ok()) return self->Refuse(api::FromStore(written.status()));
    if (!written.value().succeeded) {
      if (++self->tries_ == kMostTries) return self->Refuse(api::TooManyConflicts());
      return self->Start();
    }
    *self->response_ = MessageOf(*shared, Detail::kWhole, SecondsNow());
    self->reactor_->Finish(grpc::Status::OK);
  });
}

}  // namespace rocegw::migrations
