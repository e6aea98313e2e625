// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/writes/writer.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "controlplane/api/calls/audit_note.h"
#include "controlplane/model/timestamp.h"

namespace rocegw::api {
namespace {

// Limit of attempts when others keep changing what this write relies on.
constexpr int kMostAttempts = 32;
// Key that does not exist; its reading tells the newest revision.
constexpr std::string_view kNoKey = "none";

}  // namespace

struct Writer::Attempt {
  Call call;
  Planner plan;
  Done done;
  Plan planned;
  Records records;
  int count = 0;
  store::Revision planned_at = 0;               // revision of the plan's fleet
  std::optional<store::Revision> refusable_at;  // a plan on this fleet or a newer one may refuse
};

void Writer::Write(Call call, store::Revision at_least, Planner plan, Done done) {
  auto attempt = std::make_shared<Attempt>();
  attempt->call = std::move(call);
  attempt->plan = std::move(plan);
  attempt->done = std::move(done);
  WhenFresh(at_least, [this, attempt](On thread) { Try(attempt, thread); });
}

void Writer::WhenFresh(store::Revision at_least, std::function<void(On)> call) {
  const store::Revision seen =
      follower_.Read([](const sync::Fleet& fleet) { return fleet.view.revision; });
  const store::Revision acknowledged = acknowledged_.load();
  if (at_least <= seen && acknowledged <= seen) return call(On::kCaller);
  const auto later = [call = std::move(call)] { call(On::kFollower); };
  if (at_least <= std::max(seen, acknowledged)) return follower_.WhenReached(acknowledged, later);
  follower_.WhenNewest([this, acknowledged, later](const StatusOr<store::Revision>& newest) {
    if (newest.ok()) return later();
    follower_.WhenReached(acknowledged, later);
  });
}

void Writer::Validate(store::Revision at_least, Planner plan, Done done) {
  WhenFresh(at_least, [this, plan = std::move(plan), done = std::move(done)](On) {
    const auto answer = [this, plan, done] {
      PlanOrError planned = follower_.Read(plan);
      if (auto* const error = std::get_if<ApiError>(&planned)) return done(std::move(*error));
      done(Written{0, std::get<Plan>(planned).intent.value_or("")});
    };
    const PlanOrError planned = follower_.Read(plan);
    if (std::holds_alternative<Plan>(planned)) return answer();
    follower_.WhenNewest([answer, done](const StatusOr<store::Revision>& newest) {
      if (!newest.ok()) return done(FromStore(newest.status()));
      answer();
    });
  });
}

void Writer::Try(const std::shared_ptr<Attempt>& attempt, On thread) {
  PlanOrError planned = follower_.Read([&](const sync::Fleet& fleet) {
    attempt->planned_at = fleet.view.revision;
    return attempt->plan(fleet);
  });
  if (auto* const error = std::get_if<ApiError>(&planned)) {
    return RefuseOrAnswer(attempt, std::move(*error));
  }
  attempt->planned = std::move(std::get<Plan>(planned));
  const Call& call = attempt->call;
  Records& records = attempt->records;
  records = Records();
  const auto now = model::Now();
  if (!call.request_id.empty()) {
    records.request_key = RequestKey(call);
    records.request = RequestRecordOf(call, attempt->planned.intent.value_or(""), now);
  }
  records.audit_key = AuditKey(now);
  records.audit = AuditRecordOf(call, attempt->planned.name.Text(), now);
  const auto on_result = [this, attempt](const StatusOr<store::TransactionResult>& result) {
    OnResult(attempt, result);
  };
  store::Transaction transaction = ToTransaction(attempt->planned, records);
  if (thread == On::kCaller) return store_.TxnHere(std::move(transaction), on_result);
  store_.TxnAsync(std::move(transaction), on_result);
}

// The record is read at a revision that is not older than the fleet of the plan: a plan that fails
// because of this very write finds its record.
void Writer::RefuseOrAnswer(const std::shared_ptr<Attempt>& attempt, ApiError error) {
  const std::string& id = attempt->call.request_id;
  const std::string key = id.empty() ? std::string(kNoKey) : RequestKey(attempt->call);
  store_.RangeAsync({.range = store::KeyRange::Key(key), .limit = 1},
                    [this, attempt, error](const StatusOr<store::RangeResult>& found) {
                      if (!found.ok()) return attempt->done(FromStore(found.status()));
                      const std::vector<store::Entry>& entries = found.value().entries;
                      controlplane::v1::RequestRecord record;
                      if (!entries.empty() && record.ParseFromString(entries.front().value))
                        return AnswerAgain(*attempt, record, entries.front().mod_revision);
                      if (!attempt->refusable_at.has_value())
                        attempt->refusable_at = found.value().revision;
                      if (attempt->planned_at >= *attempt->refusable_at)
                        return attempt->done(error);
                      follower_.WhenReached(*attempt->refusable_at,
                                            [this, attempt] { Try(attempt, On::kFollower); });
                    });
}

void Writer::AnswerAgain(const Attempt& attempt, const controlplane::v1::RequestRecord& record,
                         store::Revision revision) {
  if (auto reused = RequestIdReused(attempt.call, record)) return attempt.done(std::move(*reused));
  attempt.done(Written{revision, record.intent()});
}

void Writer::OnResult(const std::shared_ptr<Attempt>& attempt,
                      const StatusOr<store::TransactionResult>& result) {
  if (!result.ok()) return attempt->done(FromStore(result.status()));
  if (result.value().succeeded) {
    store::Revision last = acknowledged_.load();
    while (last < result.value().revision &&
           !acknowledged_.compare_exchange_weak(last, result.value().revision)) {
    }
    return attempt->done(Written{result.value().revision, attempt->planned.intent.value_or("")});
  }
  const Refused refused = WhyRefused(attempt->planned, attempt->records, result.value());
  if (refused.answered.has_value()) {
    return AnswerAgain(*attempt, *refused.answered, refused.answered_at);
  }
  if (!refused.missing.empty()) {
    const std::string& name = refused.missing.front();
    return attempt->done(FailedPrecondition("MISSING_REFERENCE", name + " does not exist"));
  }
  if (++attempt->count == kMostAttempts) {
    return attempt->done(TooManyConflicts());
  }
  // The follower knows the reason of the refusal at that revision. A deletion leaves no revision.
  const store::Revision known = refused.newest != 0 ? refused.newest : result.value().revision;
  follower_.WhenReached(known, [this, attempt] { Try(attempt, On::kFollower); });
}

}  // namespace rocegw::api
