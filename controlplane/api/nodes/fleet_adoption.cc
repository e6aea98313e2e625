// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/nodes/fleet_adoption.h"

#include <optional>
#include <utility>

#include "controlplane/api/calls/audit_note.h"
#include "controlplane/model/timestamp.h"
#include "rocegw/admin/v1/gateways.pb.h"

namespace rocegw::api {
namespace {

using controlplane::v1::RequestRecord;

ApiError SomeSilent(uint32_t silent) {
  return {grpc::StatusCode::UNAVAILABLE,
          "CONTROLLER_DID_NOT_ANSWER",
          "done, but for gateways of " + std::to_string(silent) +
              (silent == 1 ? " controller that does" : " controllers that do") +
              " not answer; say it again",
          {},
          {}};
}

// Returns the record that the first operation read; nullopt: none, or unreadable.
std::optional<RequestRecord> RecordIn(const store::TransactionResult& result) {
  RequestRecord record;
  if (result.results.empty() || !result.results[0].entry.has_value() ||
      !record.ParseFromString(result.results[0].entry->value)) {
    return std::nullopt;
  }
  return record;
}

uint32_t GatewaysIn(const RequestRecord& record) {
  admin::v1::AdoptFleetResponse answer;
  answer.ParseFromString(record.intent());
  return answer.gateways();
}

}  // namespace

struct FleetAdoption::Asked {
  Call call;
  std::string name;
  Replicas::Deadline deadline;
  Done done;
  // Revision of the record while the answer is missing.
  store::Revision revision = 0;

  bool MayComeAgain() const { return !call.request_id.empty(); }
};

void FleetAdoption::Adopt(const Call& call, const std::string& name, Replicas::Deadline deadline,
                          Done done) {
  auto asked = std::make_shared<Asked>(Asked{call, name, deadline, std::move(done)});
  store::Transaction transaction;
  transaction.then = {AuditOf(call, name)};
  if (asked->MayComeAgain()) {
    const std::string key = RequestKey(call);
    RequestRecord record = RequestRecordOf(call, {}, model::Now());
    record.set_under_way(true);
    transaction.compares = {store::Compare::Absent(key)};
    transaction.then.push_back(store::Operation::Put(key, record.SerializeAsString()));
    transaction.otherwise = {store::Operation::Get(key)};
  }
  store_.TxnAsync(std::move(transaction),
                  [this, asked](const StatusOr<store::TransactionResult>& result) {
                    OnRecorded(asked, result);
                  });
}

void FleetAdoption::OnRecorded(const std::shared_ptr<Asked>& asked,
                               const StatusOr<store::TransactionResult>& result) {
  if (!result.ok()) return asked->done(FromStore(result.status()));
  asked->revision = result.value().revision;
  if (!result.value().succeeded) {
    const auto record = RecordIn(result.value());
    if (!record.has_value()) return asked->done(TooManyConflicts());
    if (auto reused = RequestIdReused(asked->call, *record)) return asked->done(std::move(*reused));
    if (!record->under_way()) return asked->done(GatewaysIn(*record));
    asked->revision = result.value().results[0].entry->mod_revision;
  }
  AdoptEverywhere(asked);
}

void FleetAdoption::AdoptEverywhere(const std::shared_ptr<Asked>& asked) {
  const uint32_t here = hub_.Adopt(asked->name);
  replicas_.Adopt(asked->name, asked->deadline,
                  [this, asked, here](uint32_t there, uint32_t silent) {
                    if (silent != 0) return asked->done(SomeSilent(silent));
                    if (!asked->MayComeAgain()) return asked->done(here + there);
                    KeepAnswer(asked, here + there);
                  });
}

void FleetAdoption::KeepAnswer(const std::shared_ptr<Asked>& asked, uint32_t gateways) {
  admin::v1::AdoptFleetResponse answer;
  answer.set_gateways(gateways);
  const std::string key = RequestKey(asked->call);
  store::Transaction transaction;
  transaction.compares = {store::Compare::ModifiedAt(key, asked->revision)};
  transaction.then = {store::Operation::Put(
      key,
      RequestRecordOf(asked->call, answer.SerializeAsString(), model::Now()).SerializeAsString())};
  transaction.otherwise = {store::Operation::Get(key)};
  store_.TxnAsync(
      std::move(transaction), [asked, gateways](const StatusOr<store::TransactionResult>& result) {
        if (!result.ok()) return asked->done(FromStore(result.status()));
        // A concurrent call with the same id was faster: its answer counts.
        const auto first = result.value().succeeded ? std::nullopt : RecordIn(result.value());
        asked->done(first.has_value() ? GatewaysIn(*first) : gateways);
      });
}

}  // namespace rocegw::api
