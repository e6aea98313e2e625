// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/nodes/enrollment.h"

#include <google/protobuf/util/time_util.h>
#include <spdlog/spdlog.h>

#include <iterator>
#include <utility>

#include "controlplane/api/calls/audit_note.h"
#include "controlplane/api/calls/request_record.h"
#include "controlplane/api/writes/standard_methods.h"
#include "controlplane/identity/fleet_key_rotation.h"
#include "controlplane/identity/join_token.h"
#include "controlplane/model/stored.h"
#include "controlplane/model/timestamp.h"
#include "gateway/base/timing/monotonic_clock.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::api {
namespace {

using google::protobuf::util::TimeUtil;
using identity::Enrolled;
using identity::Found;
using identity::Refusal;

constexpr int kMostPlans = 32;

ApiError FromRefusal(const Refusal& refusal) {
  switch (refusal.kind) {
    case Refusal::Kind::kInvalid:
      return InvalidArgument({{refusal.field, refusal.text}});
    case Refusal::Kind::kUnauthenticated:
      return {grpc::StatusCode::UNAUTHENTICATED, refusal.reason, refusal.text, {}, {}};
    case Refusal::Kind::kDenied:
      return {grpc::StatusCode::PERMISSION_DENIED, refusal.reason, refusal.text, {}, {}};
    case Refusal::Kind::kFailed:
      break;
  }
  return {grpc::StatusCode::INTERNAL, refusal.reason, refusal.text, {}, {}};
}

void Append(identity::Step step, store::Transaction& transaction) {
  std::move(step.compares.begin(), step.compares.end(), std::back_inserter(transaction.compares));
  std::move(step.operations.begin(), step.operations.end(), std::back_inserter(transaction.then));
}

std::string PathOf(const std::string& gateway) { return "node/" + model::NameOf(gateway).id; }

// Returns the answer of a rotation from its record in the store, where it may be a repeated call's.
admin::v1::RotateFleetKeysResponse AnswerOf(const identity::KeyRotation& rotation) {
  const auto text = [](identity::TimePoint time) {
    return TimeUtil::MicrosecondsToTimestamp(time.time_since_epoch().count());
  };
  admin::v1::RotateFleetKeysResponse answer;
  *answer.mutable_start_time() = text(rotation.start);
  *answer.mutable_done_time() = text(rotation.done);
  return answer;
}

}  // namespace

PlanOrError Enrollment::PlanDelete(const sync::Fleet& fleet, const std::string& name,
                                   const std::string& etag, identity::TimePoint now) const {
  PlanOrError planned = api::PlanDelete<types::v1::Gateway>(fleet, name, etag);
  if (auto* const plan = std::get_if<Plan>(&planned)) {
    const std::string path = PathOf(name);
    const auto known = fleet.certificates.find(identity::CertificateKey(path));
    const identity::Step revoke = identity::PlanRevoke(
        path, known == fleet.certificates.end() ? Found() : Found(known->second), now,
        identity::Rejoin::kAllowed);
    const identity::Step rotate =
        identity::PlanKeyRotation(fleet.fleet_keys, options_.fleet_key_period, now).step;
    for (const identity::Step& step : {revoke, rotate}) {
      for (size_t i = 0; i < step.operations.size(); ++i) {
        plan->records.push_back({.key = step.operations[i].key,
                                 .value = step.operations[i].value,
                                 .replaces = step.compares[i].revision});
      }
    }
  }
  return planned;
}

void Enrollment::CreateToken(const Admitted& caller, const std::string& gateway,
                             std::chrono::seconds lifetime, TokenDone done) {
  if (lifetime == std::chrono::seconds(0)) lifetime = identity::kUsualTokenLifetime;
  if (lifetime < std::chrono::seconds(1) || lifetime > identity::kLongestTokenLifetime) {
    return done(InvalidArgument({{"lifetime", "must be between a second and a day"}}));
  }
  const auto token = identity::MakeJoinToken(gateway, lifetime, caller.principal, identity::Now());
  admin::v1::AuditRecord said;  // contents of the request for the audit
  said.set_resource(gateway);
  store::Transaction transaction;
  transaction.then = {token.put, AuditOf(caller, gateway, said)};
  std::string file =
      identity::WriteJoinFile({.controllers = options_.controllers,
                               .server_name = identity::ServerName(authority_.domain()),
                               .gateway = gateway,
                               .token = token.token,
                               .expires = identity::TimeText(token.expires),
                               .trust_bundle = authority_.bundle()});
  store_.TxnAsync(std::move(transaction), [file = std::move(file), done = std::move(done)](
                                              const StatusOr<store::TransactionResult>& result) {
    if (!result.ok()) return done(FromStore(result.status()));
    done(file);
  });
}

void Enrollment::Revoke(const Call& call, const std::string& gateway, RevokeDone done) {
  auto attempt = std::make_shared<Attempt>();
  const std::string path = PathOf(gateway);
  attempt->reads = {identity::CertificateKey(path), std::string(model::kFleetKeysKey)};
  if (!call.request_id.empty()) attempt->reads.push_back(RequestKey(call));
  attempt->plan = [call, gateway, path,
                   period = options_.fleet_key_period](const std::vector<Found>& found) -> Planned {
    store::Transaction transaction;
    transaction.then = {AuditOf(call, gateway)};
    if (!call.request_id.empty()) {
      if (const auto record = ReadRequestRecord(found[2])) {
        if (auto reused = RequestIdReused(call, *record)) return std::move(*reused);
        return DoneBefore{};
      }
    }
    AddRequestRecord(call, transaction);
    const identity::TimePoint now = identity::Now();
    Append(identity::PlanRevoke(path, found[0], now, identity::Rejoin::kByJoinToken), transaction);
    Append(identity::PlanKeyRotation(found[1], period, now).step, transaction);
    return transaction;
  };
  attempt->done = std::move(done);
  Run(attempt);
}

void Enrollment::RotateKeys(const Call& call, RotateDone done) {
  auto attempt = std::make_shared<Attempt>();
  auto answer = std::make_shared<admin::v1::RotateFleetKeysResponse>();
  attempt->reads = {std::string(model::kFleetKeysKey)};
  if (!call.request_id.empty()) attempt->reads.push_back(RequestKey(call));
  attempt->plan = [call, answer,
                   period = options_.fleet_key_period](const std::vector<Found>& found) -> Planned {
    store::Transaction transaction;
    transaction.then = {AuditOf(call, "gateways/-")};
    if (!call.request_id.empty()) {
      if (const auto record = ReadRequestRecord(found[1])) {
        if (auto reused = RequestIdReused(call, *record)) return std::move(*reused);
        if (!answer->ParseFromString(record->intent())) answer->Clear();
        return DoneBefore{};
      }
    }
    identity::KeyRotation rotation = identity::PlanKeyRotation(found[0], period, identity::Now());
    *answer = AnswerOf(rotation);
    AddRequestRecord(call, transaction, answer->SerializeAsString());
    Append(std::move(rotation.step), transaction);
    return transaction;
  };
  attempt->done = [answer, done = std::move(done)](std::optional<ApiError> error) {
    if (error.has_value()) return done(std::move(*error));
    done(*answer);
  };
  Run(attempt);
}

// Creates the gateway's object if it does not exist.
std::variant<store::Transaction, ApiError> Enrollment::GatewayTransaction(
    const std::string& gateway) const {
  return follower_.Read(
      [&](const sync::Fleet& fleet) -> std::variant<store::Transaction, ApiError> {
        store::Transaction transaction;
        if (controllers::ObjectsOf<types::v1::Gateway>(fleet.view).contains(gateway)) {
          transaction.compares.push_back(
              store::Compare::Exists(model::KeyOf(model::Part::kIntent, model::NameOf(gateway))));
          return transaction;
        }
        types::v1::Gateway object;
        object.set_name(gateway);
        PlanOrError planned = PlanCreate(fleet, std::move(object), NewBirth());
        if (auto* const error = std::get_if<ApiError>(&planned)) return std::move(*error);
        const Plan& plan = std::get<Plan>(planned);
        transaction.compares.push_back(
            store::Compare::Absent(model::KeyOf(model::Part::kIntent, plan.name)));
        transaction.then.push_back(store::Operation::Put(
            model::KeyOf(model::Part::kIntent, plan.name), plan.intent.value_or("")));
        for (const Guard& guard : plan.guards) {
          transaction.compares.push_back(store::Compare::ModifiedAt(guard.key, guard.revision));
          transaction.then.push_back(store::Operation::Put(guard.key, ""));
        }
        return transaction;
      });
}

void Enrollment::Join(const Admitted& caller, const fleet::v1::JoinRequest& request,
                      JoinDone done) {
  if (request.token().empty() == request.service_account_token().empty()) {
    return done(InvalidArgument(
        {{"token", "either this or service_account_token is needed, and not both"}}));
  }
  if (!request.token().empty()) return JoinByToken(caller, request, std::move(done));
  if (options_.pods == nullptr) {
    return done(ApiError{grpc::StatusCode::UNAUTHENTICATED,
                         "PODS_NOT_ADMITTED",
                         "this controller does not let pods join by their token "
                         "(kubernetes.join): a join token is needed",
                         {},
                         {}});
  }
  options_.pods->Review(
      caller.peer, request.service_account_token(), MonotonicNow(),
      [this, caller, request, done = std::move(done)](std::variant<std::string, ApiError> outcome) {
        if (auto* const error = std::get_if<ApiError>(&outcome)) return done(std::move(*error));
        JoinByPod(caller, request, std::get<std::string>(outcome), done);
      });
}

Enrollment::Planned Enrollment::JoinTransaction(const Admitted& caller, const std::string& gateway,
                                                identity::EnrolledOrRefusal outcome,
                                                const google::protobuf::Message& said,
                                                fleet::v1::JoinResponse& response) const {
  if (const auto* refusal = std::get_if<Refusal>(&outcome)) return FromRefusal(*refusal);
  auto transaction = GatewayTransaction(gateway);
  if (auto* const error = std::get_if<ApiError>(&transaction)) return std::move(*error);
  auto& good = std::get<store::Transaction>(transaction);
  auto& enrolled = std::get<Enrolled>(outcome);
  response.set_certificate_chain(enrolled.certificate_chain);
  Append(std::move(enrolled.step), good);
  Admitted joined = caller;
  joined.principal = identity::NodeUri(authority_.domain(), model::NameOf(gateway).id);
  good.then.push_back(AuditOf(joined, gateway, said));
  return std::move(good);
}

void Enrollment::JoinByToken(const Admitted& caller, const fleet::v1::JoinRequest& request,
                             JoinDone done) {
  auto attempt = std::make_shared<Attempt>();
  auto response = std::make_shared<fleet::v1::JoinResponse>();
  response->set_trust_bundle(authority_.bundle());
  attempt->reads = {identity::JoinTokenKey(request.token()),
                    identity::CertificateKey(PathOf(request.gateway()))};
  attempt->plan = [this, caller, request, response](const std::vector<Found>& found) -> Planned {
    auto outcome = identity::PlanJoin(authority_,
                                      {.gateway = request.gateway(),
                                       .token = request.token(),
                                       .certificate_request = request.certificate_request()},
                                      found[0], found[1], options_.node_lifetime, identity::Now());
    fleet::v1::JoinRequest said = request;
    said.clear_token();
    return JoinTransaction(caller, request.gateway(), std::move(outcome), said, *response);
  };
  attempt->done = [response, done = std::move(done)](std::optional<ApiError> error) {
    if (error.has_value()) return done(std::move(*error));
    done(*response);
  };
  Run(attempt);
}

void Enrollment::JoinByPod(const Admitted& caller, const fleet::v1::JoinRequest& request,
                           const std::string& node, JoinDone done) {
  auto attempt = std::make_shared<Attempt>();
  auto response = std::make_shared<fleet::v1::JoinResponse>();
  response->set_trust_bundle(authority_.bundle());
  controlplane::v1::PodJoin said;
  said.set_gateway(request.gateway());
  said.set_kubernetes_node(node);
  said.set_service_account(options_.pods->account());
  said.set_certificate_request(request.certificate_request());
  attempt->reads = {identity::CertificateKey(PathOf(request.gateway()))};
  attempt->plan = [this, caller, said, response](const std::vector<Found>& found) -> Planned {
    auto outcome = identity::PlanPodJoin(authority_,
                                         {.gateway = said.gateway(),
                                          .node = said.kubernetes_node(),
                                          .certificate_request = said.certificate_request()},
                                         found[0], options_.node_lifetime, identity::Now());
    return JoinTransaction(caller, said.gateway(), std::move(outcome), said, *response);
  };
  attempt->done = [response, said, peer = caller.peer,
                   done = std::move(done)](std::optional<ApiError> error) {
    if (error.has_value()) {
      spdlog::warn("{} at {} does not join as {}: {}", said.kubernetes_node(), peer, said.gateway(),
                   error->message);
      return done(std::move(*error));
    }
    spdlog::info("the Kubernetes node {} has joined as {}", said.kubernetes_node(), said.gateway());
    done(*response);
  };
  Run(attempt);
}

std::string Enrollment::PodJoinFile() const {
  return identity::WriteJoinFile({.controllers = options_.controllers,
                                  .server_name = identity::ServerName(authority_.domain()),
                                  .gateway = {},
                                  .token = {},
                                  .expires = {},
                                  .trust_bundle = authority_.bundle()});
}

void Enrollment::Renew(const Admitted& caller, const fleet::v1::RenewRequest& request,
                       const std::string& serial, RenewDone done) {
  auto attempt = std::make_shared<Attempt>();
  auto response = std::make_shared<fleet::v1::RenewResponse>();
  response->set_trust_bundle(authority_.bundle());
  attempt->reads = {identity::CertificateKey(PathOf(request.gateway()))};
  attempt->plan = [this, caller, request, serial,
                   response](const std::vector<Found>& found) -> Planned {
    auto outcome = identity::PlanRenew(authority_, request.gateway(), request.certificate_request(),
                                       serial, found[0], options_.node_lifetime, identity::Now());
    if (const auto* refusal = std::get_if<Refusal>(&outcome)) return FromRefusal(*refusal);
    auto& enrolled = std::get<Enrolled>(outcome);
    response->set_certificate_chain(enrolled.certificate_chain);
    store::Transaction transaction;
    transaction.then = {AuditOf(caller, request.gateway(), request)};
    Append(std::move(enrolled.step), transaction);
    return transaction;
  };
  attempt->done = [response, done = std::move(done)](std::optional<ApiError> error) {
    if (error.has_value()) return done(std::move(*error));
    done(*response);
  };
  Run(attempt);
}

void Enrollment::Run(const std::shared_ptr<Attempt>& attempt) {
  store::Transaction read;
  for (const std::string& key : attempt->reads) read.then.push_back(store::Operation::Get(key));
  store_.TxnAsync(std::move(read),
                  [this, attempt](const StatusOr<store::TransactionResult>& result) {
                    Commit(attempt, result);
                  });
}

void Enrollment::Commit(const std::shared_ptr<Attempt>& attempt,
                        const StatusOr<store::TransactionResult>& read) {
  if (!read.ok()) return attempt->done(FromStore(read.status()));
  std::vector<Found> found;
  for (const store::OperationResult& one : read.value().results) found.push_back(one.entry);
  auto planned = attempt->plan(found);
  if (auto* const error = std::get_if<ApiError>(&planned)) {
    return attempt->done(std::move(*error));
  }
  if (std::holds_alternative<DoneBefore>(planned)) return attempt->done(std::nullopt);
  store_.TxnAsync(std::move(std::get<store::Transaction>(planned)),
                  [this, attempt](const StatusOr<store::TransactionResult>& result) {
                    if (!result.ok()) return attempt->done(FromStore(result.status()));
                    if (result.value().succeeded) return attempt->done(std::nullopt);
                    if (++attempt->count == kMostPlans) {
                      return attempt->done(TooManyConflicts());
                    }
                    // Waits until the follower knows the change that made it fail.
                    follower_.WhenReached(result.value().revision,
                                          [this, attempt] { Run(attempt); });
                  });
}

}  // namespace rocegw::api
