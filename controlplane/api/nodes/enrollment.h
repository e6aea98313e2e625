// SPDX-License-Identifier: Apache-2.0
// Carries through what identity/enrollment.h plans: join tokens, joining, renewal, revocation, each
// with its audit record in one transaction, planned anew when others were faster. A join also makes
// the gateway's object where there is none. Never waits. Any thread; must outlive its calls.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "controlplane/api/calls/admission.h"
#include "controlplane/api/calls/api_error.h"
#include "controlplane/api/writes/writer.h"
#include "controlplane/identity/certificate_authority.h"
#include "controlplane/identity/enrollment.h"
#include "controlplane/store/store.h"
#include "controlplane/sync/fleet_follower.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::api {

// A gateway's object goes, and with it every certificate that was issued for it: its streams end
// everywhere within moments, and it comes back only with a new join token for its name.
PlanOrError PlanDeleteGateway(const sync::Fleet& fleet, const std::string& name,
                              const std::string& etag, identity::TimePoint now);

struct EnrollmentOptions {
  std::chrono::seconds node_lifetime = std::chrono::hours(24);
  // "host:port" under which agents reach the controllers of this fleet.
  std::vector<std::string> controllers;
};

class Enrollment {
 public:
  Enrollment(store::Store& store, sync::FleetFollower& follower,
             const identity::CertificateAuthority& authority, EnrollmentOptions options)
      : store_(store), follower_(follower), authority_(authority), options_(std::move(options)) {}

  // gateway: "gateways/G", or empty for a name that nobody has. lifetime 0: an hour. The file for
  // the host; see identity/join_token.h.
  using TokenDone = std::function<void(std::variant<std::string, ApiError>)>;
  void CreateToken(const Admitted& caller, const std::string& gateway,
                   std::chrono::seconds lifetime, TokenDone done);

  // `ended` gateways' certificates that were issued until now are refused everywhere within
  // moments, and their streams end. It need not exist any more. nullopt: done, now or before under
  // the call's request_id; what was issued since is good then.
  using RevokeDone = std::function<void(std::optional<ApiError>)>;
  void Revoke(const Call& call, const std::string& gateway, RevokeDone done);

  using JoinDone = std::function<void(std::variant<fleet::v1::JoinResponse, ApiError>)>;
  void Join(const Admitted& caller, const fleet::v1::JoinRequest& request, JoinDone done);

  // serial: of the certificate that the call was made with.
  using RenewDone = std::function<void(std::variant<fleet::v1::RenewResponse, ApiError>)>;
  void Renew(const Admitted& caller, const fleet::v1::RenewRequest& request,
             const std::string& serial, RenewDone done);

 private:
  struct DoneBefore {};
  using Planned = std::variant<store::Transaction, DoneBefore, ApiError>;
  // One that is planned until it succeeds.
  struct Attempt {
    std::vector<std::string> reads;
    // From what the keys of `reads` hold to a transaction, or why not.
    std::function<Planned(const std::vector<identity::Found>& found)> plan;
    std::function<void(std::optional<ApiError>)> done;
    int count = 0;
  };
  void Run(const std::shared_ptr<Attempt>& attempt);
  void Commit(const std::shared_ptr<Attempt>& attempt,
              const StatusOr<store::TransactionResult>& read);
  std::variant<store::Transaction, ApiError> GatewayTransaction(const std::string& gateway) const;

  store::Store& store_;
  sync::FleetFollower& follower_;
  const identity::CertificateAuthority& authority_;
  const EnrollmentOptions options_;
};

}  // namespace rocegw::api
