// SPDX-License-Identifier: Apache-2.0
// Plans for hosts that join the fleet, renew their certificates, or are revoked: from values of the
// store to the compares and operations of one transaction. The caller reads, plans, adds the rest
// of the transaction (audit record, the gateway's object), and plans again after a failed compare.
// Pure except for signing; any thread.
//
// A host joins by a join token, or, in the controller's Kubernetes cluster, by the token of its
// agent's pod (PlanPodJoin). Renewal: the old certificate is valid until the new one was used, so a
// lost answer locks no host out. Revocation: all certificates issued so far are refused.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "controlplane/identity/certificate_authority.h"
#include "controlplane/store/transaction.h"

namespace rocegw::identity {

// Reason against a plan, for the caller, without secrets.
struct Refusal {
  enum class Kind { kInvalid, kUnauthenticated, kDenied, kFailed };
  Kind kind = Kind::kDenied;
  std::string reason;  // machine-readable: "TOKEN_EXPIRED"
  std::string text;
  std::string field;  // kInvalid: the field
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

// Returns "certificates/node/G" for path "node/G".
std::string CertificateKey(const std::string& path);

struct JoinRequest {
  std::string gateway;  // "gateways/G", checked
  std::string token;
  std::string certificate_request;
};

// `token_record`: value of JoinTokenKey(token); `certificate_record`: of CertificateKey.
EnrolledOrRefusal PlanJoin(const CertificateAuthority& authority, const JoinRequest& request,
                           const Found& token_record, const Found& certificate_record,
                           std::chrono::seconds lifetime, TimePoint now);

struct PodJoinRequest {
  std::string gateway;  // "gateways/G", checked
  std::string node;     // node of the pod, as the API server confirmed it; not empty
  std::string certificate_request;
};

// Admits the name that the node's name begins with, if no host has it, or this node had it before
// and its certificates were not revoked by name.
EnrolledOrRefusal PlanPodJoin(const CertificateAuthority& authority, const PodJoinRequest& request,
                              const Found& certificate_record, std::chrono::seconds lifetime,
                              TimePoint now);

// Returns the name in the fleet of a Kubernetes node: the first label of its name, as the host name
// of the node gives it (agent/supervise/main.cc).
std::string NameOfKubernetesNode(std::string_view node);

// `serial`: of the call's certificate.
EnrolledOrRefusal PlanRenew(const CertificateAuthority& authority, const std::string& gateway,
                            const std::string& certificate_request, const std::string& serial,
                            const Found& certificate_record, std::chrono::seconds lifetime,
                            TimePoint now);

// Tells how a name whose certificates were revoked may return.
enum class Rejoin {
  kAllowed,      // also by a pod's token, if it joined so before
  kByJoinToken,  // by a join token for the name only
};

// Refuses all certificates of the path issued so far; the next one is valid.
Step PlanRevoke(const std::string& path, const Found& certificate_record, TimePoint now,
                Rejoin rejoin);

// Returns true if the certificate with this serial number is refused.
bool IsRevoked(const Found& certificate_record, const std::string& serial);

// Plans the first use of a certificate, after which those before it are refused. nullopt: done
// already, or not the awaited certificate.
std::optional<Step> PlanFirstUse(const std::string& path, const std::string& serial,
                                 const Found& certificate_record);

}  // namespace rocegw::identity
