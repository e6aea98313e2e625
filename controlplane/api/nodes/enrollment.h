// SPDX-License-Identifier: Apache-2.0
// Execution of the plans of identity/enrollment.h: join tokens, joining, renewal, revocation, each
// with its audit record in one transaction, planned again after a conflict. A join also creates the
// gateway's object. Never waits. Any thread; must outlive its calls.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "controlplane/api/calls/admission.h"
#include "controlplane/api/calls/api_error.h"
#include "controlplane/api/nodes/pod_review.h"
#include "controlplane/api/writes/writer.h"
#include "controlplane/identity/certificate_authority.h"
#include "controlplane/identity/enrollment.h"
#include "controlplane/store/store.h"
#include "controlplane/sync/fleet_follower.h"
#include "rocegw/admin/v1/gateways.pb.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::api {

struct EnrollmentOptions {
  std::chrono::seconds node_lifetime = std::chrono::hours(24);
  std::chrono::seconds fleet_key_period = std::chrono::hours(24);
  // "host:port" addresses at which agents reach this fleet's controllers.
  std::vector<std::string> controllers;
  // Reviews tokens of agents' pods; nullptr: hosts join by join tokens only.
  PodReview* pods = nullptr;
};

class Enrollment {
 public:
  Enrollment(store::Store& store, sync::FleetFollower& follower,
             const identity::CertificateAuthority& authority, EnrollmentOptions options)
      : store_(store), follower_(follower), authority_(authority), options_(std::move(options)) {}

  // Lifetime of the certificates that nodes get.
  std::chrono::seconds node_lifetime() const { return options_.node_lifetime; }

  // Creates a join token and passes the join file for the host (identity/join_token.h). `gateway`:
  // "gateways/G", or empty for any unused name. `lifetime` 0: an hour.
  using TokenDone = std::function<void(std::variant<std::string, ApiError>)>;
  void CreateToken(const Admitted& caller, const std::string& gateway,
                   std::chrono::seconds lifetime, TokenDone done);

  // Plans the deletion of a gateway's object together with all its certificates, and a rotation of
  // the fleet's keys, which the host knows: its streams end everywhere within moments, and it can
  // return only with a new join token for its name.
  PlanOrError PlanDelete(const sync::Fleet& fleet, const std::string& name, const std::string& etag,
                         identity::TimePoint now) const;

  // Revokes the certificates that were issued so far for a gateway, which need not exist any more,
  // and rotates the fleet's keys: they are refused everywhere within moments, and their streams
  // end. nullopt: done, now or before under the call's request_id; later certificates are valid.
  using RevokeDone = std::function<void(std::optional<ApiError>)>;
  void Revoke(const Call& call, const std::string& gateway, RevokeDone done);

  // Rotates the fleet's keys; passes when the new generation begins and when no earlier one is
  // accepted.
  using RotateDone =
      std::function<void(std::variant<admin::v1::RotateFleetKeysResponse, ApiError>)>;
  void RotateKeys(const Call& call, RotateDone done);

  // Takes either of the request's tokens.
  using JoinDone = std::function<void(std::variant<fleet::v1::JoinResponse, ApiError>)>;
  void Join(const Admitted& caller, const fleet::v1::JoinRequest& request, JoinDone done);

  // `serial`: of the call's certificate.
  using RenewDone = std::function<void(std::variant<fleet::v1::RenewResponse, ApiError>)>;
  void Renew(const Admitted& caller, const fleet::v1::RenewRequest& request,
             const std::string& serial, RenewDone done);

  // Returns the join file of agents that join by their pod's token: it has no token.
  std::string PodJoinFile() const;

 private:
  struct DoneBefore {};
  using Planned = std::variant<store::Transaction, DoneBefore, ApiError>;
  // Transaction that is planned until it succeeds.
  struct Attempt {
    std::vector<std::string> reads;
    // Plans a transaction, or a refusal, from the values of the keys in `reads`.
    std::function<Planned(const std::vector<identity::Found>& found)> plan;
    std::function<void(std::optional<ApiError>)> done;
    int count = 0;
  };
  void Run(const std::shared_ptr<Attempt>& attempt);
  void Commit(const std::shared_ptr<Attempt>& attempt,
              const StatusOr<store::TransactionResult>& read);
  std::variant<store::Transaction, ApiError> GatewayTransaction(const std::string& gateway) const;
  void JoinByToken(const Admitted& caller, const fleet::v1::JoinRequest& request, JoinDone done);
  // `node`: Kubernetes node of the pod, confirmed.
  void JoinByPod(const Admitted& caller, const fleet::v1::JoinRequest& request,
                 const std::string& node, JoinDone done);
  // Returns the transaction of a join, or the error. `said`: the request for the audit.
  Planned JoinTransaction(const Admitted& caller, const std::string& gateway,
                          identity::EnrolledOrRefusal outcome,
                          const google::protobuf::Message& said,
                          fleet::v1::JoinResponse& response) const;

  store::Store& store_;
  sync::FleetFollower& follower_;
  const identity::CertificateAuthority& authority_;
  const EnrollmentOptions options_;
};

}  // namespace rocegw::api
