// SPDX-License-Identifier: Apache-2.0
// How hosts come into the fleet, renew their certificates and are put out again, as plans: from
// what the store holds to the comparisons and operations of one transaction. The caller reads,
// plans, adds what else belongs into the transaction (audit record, the gateway's object), and
// plans anew when a comparison failed. Pure but for signing; any thread.
//
// Renewal: the old certificate stays good until the new one has been seen, so an answer that gets
// lost shuts nobody out. Revocation: everything that was issued until then is refused.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "controlplane/identity/certificate_authority.h"
#include "controlplane/store/transaction.h"

namespace rocegw::identity {

// Why a plan cannot be: for the caller, without what it must not know.
struct Refusal {
  enum class Kind { kInvalid, kUnauthenticated, kDenied, kFailed };
  Kind kind = Kind::kDenied;
  std::string reason;  // for machines: "TOKEN_EXPIRED"
  std::string text;
  std::string field;  // kInvalid: which one
};

struct Step {
  std::vector<store::Compare> compares;
  std::vector<store::Operation> operations;
};

struct Enrolled {
  Step step;
  std::string certificate_chain;
  std::string serial;
  TimePoint not_after;
};

using EnrolledOrRefusal = std::variant<Enrolled, Refusal>;
using Found = std::optional<store::Entry>;

// "certificates/node/G" for path "node/G".
std::string CertificateKey(const std::string& path);

struct JoinRequest {
  std::string gateway;  // "gateways/G", checked
  std::string token;
  std::string certificate_request;
};

// token_record is what JoinTokenKey(token) holds, certificate_record what CertificateKey does.
EnrolledOrRefusal PlanJoin(const CertificateAuthority& authority, const JoinRequest& request,
                           const Found& token_record, const Found& certificate_record,
                           std::chrono::seconds lifetime, TimePoint now);

// serial: of the certificate that the call is made with.
EnrolledOrRefusal PlanRenew(const CertificateAuthority& authority, const std::string& gateway,
                            const std::string& certificate_request, const std::string& serial,
                            const Found& certificate_record, std::chrono::seconds lifetime,
                            TimePoint now);

// All certificates of the path that have been issued are refused from now on; the next one that is
// issued is good.
Step PlanRevoke(const std::string& path, const Found& certificate_record, TimePoint now);

// The certificate was seen for the first time: those before it are refused from now on. nullopt:
// that is so already, or it is not the one that was awaited.
std::optional<Step> PlanFirstUse(const std::string& path, const std::string& serial,
                                 const Found& certificate_record);

}  // namespace rocegw::identity
