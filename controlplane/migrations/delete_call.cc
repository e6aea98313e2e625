// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/delete_call.h"

#include <utility>

#include "controlplane/api/calls/audit_note.h"
#include "controlplane/migrations/order_call.h"

namespace rocegw::migrations {
namespace {

constexpr size_t kEventsAtOnce = 100;

}  // namespace

DeleteCall::DeleteCall(store::Store& store, std::string name, api::Call call,
                       grpc::ServerUnaryReactor* reactor)
    : store_(store),
      name_(std::move(name)),
      id_(name_.substr(name_.find('/') + 1)),
      call_(std::move(call)),
      reactor_(reactor) {}

void DeleteCall::Refuse(const api::ApiError& error) { reactor_->Finish(api::ToStatus(error)); }

void DeleteCall::Start() {
  store_.RangeAsync({.range = store::KeyRange::Prefix(PrefixOf(id_))},
                    [self = shared_from_this()](const auto& rows) { self->OnRows(rows); });
}

void DeleteCall::OnRows(const StatusOr<store::RangeResult>& rows) {
  if (!rows.ok()) return Refuse(api::FromStore(rows.status()));
  if (rows.value().entries.empty()) return Refuse(api::NotFound(name_));
  std::string problem;
  stored_ = ReadMigration(id_, rows.value().entries, problem);
  if (problem.empty() && !HasEnded(stored_.record)) {
    return Refuse(api::FailedPrecondition(
        "NOT_ENDED", name_ + " is " + std::string(WordOf(stored_.record.state)) +
                         ": only one that is FINALIZED, ROLLED_BACK or ABORTED is deleted"));
  }
  if (!problem.empty()) return Refuse(Unreadable(name_, problem));
  DeleteEvents();
}

void DeleteCall::DeleteEvents() {
  store_.RangeAsync({.range = store::KeyRange::Prefix(EventPrefix(id_)),
                     .limit = kEventsAtOnce,
                     .keys_only = true},
                    [self = shared_from_this()](const auto& rows) { self->OnEvents(rows); });
}

void DeleteCall::OnEvents(const StatusOr<store::RangeResult>& rows) {
  if (!rows.ok()) return Refuse(api::FromStore(rows.status()));
  if (rows.value().entries.empty()) return DeleteRest();
  store::Transaction transaction;
  // A migration that goes on, by a rollback after an abort, keeps the rest of its events.
  transaction.compares = {store::Compare::ModifiedAt(HeadKey(id_), stored_.revision)};
  for (const store::Entry& entry : rows.value().entries)
    transaction.then.push_back(store::Operation::Delete(entry.key));
  store_.TxnAsync(std::move(transaction), [self = shared_from_this()](const auto& written) {
    if (!written.ok()) return self->Refuse(api::FromStore(written.status()));
    if (!written.value().succeeded) return self->Refuse(api::TooManyConflicts());
    self->DeleteEvents();
  });
}

void DeleteCall::DeleteRest() {
  store::Transaction transaction = DeletionOf(stored_);
  transaction.then.push_back(api::AuditOf(call_, name_));
  store_.TxnAsync(std::move(transaction), [self = shared_from_this()](const auto& written) {
    if (!written.ok()) return self->Refuse(api::FromStore(written.status()));
    if (!written.value().succeeded) return self->Refuse(api::TooManyConflicts());
    self->reactor_->Finish(grpc::Status::OK);
  });
}

}  // namespace rocegw::migrations
