// SPDX-License-Identifier: Apache-2.0
#include "controlplane/identity/enrollment.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <utility>

#include "controlplane/identity/join_token.h"
#include "controlplane/model/resource_name.h"
#include "controlplane/model/stored.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::identity {
namespace {

using controlplane::v1::CertificateRecord;
using controlplane::v1::JoinTokenRecord;
using google::protobuf::util::TimeUtil;
using Kind = Refusal::Kind;

google::protobuf::Timestamp Timestamp(TimePoint time) {
  return TimeUtil::MicrosecondsToTimestamp(time.time_since_epoch().count());
}

TimePoint TimeOf(const google::protobuf::Timestamp& time) {
  return TimePoint(std::chrono::microseconds(TimeUtil::TimestampToMicroseconds(time)));
}

template <typename Record>
Record Parse(const Found& found) {
  Record record;
  if (found.has_value()) record.ParseFromString(found->value);
  return record;
}

store::Compare Unchanged(const std::string& key, const Found& found) {
  return store::Compare::ModifiedAt(key, found.has_value() ? found->mod_revision : 0);
}

// Later than all earlier issues for the name, whatever the clocks of several controllers say.
TimePoint IssueTime(const CertificateRecord& record, TimePoint now) {
  const TimePoint newest =
      std::max(TimeOfSerial(record.least_serial()), TimeOfSerial(record.next_serial()));
  return std::max(now, newest + std::chrono::microseconds(1));
}

// Signs, and records that the new certificate replaces those before it. `record`: value of `found`,
// which the caller may have changed.
EnrolledOrRefusal Enroll(const CertificateAuthority& authority, const std::string& gateway,
                         EVP_PKEY& key, const Found& found, CertificateRecord record,
                         std::chrono::seconds lifetime, TimePoint now) {
  const std::string id = model::NameOf(gateway).id;
  const std::string record_key = CertificateKey("node/" + id);
  const TimePoint issued_at = IssueTime(record, now);
  auto issued = authority.IssueNode(key, id, lifetime, NewSerial(issued_at));
  if (!issued.ok()) {
    return Refusal{Kind::kFailed, "CANNOT_ISSUE", issued.status().text(), {}};
  }
  record.set_next_serial(issued->serial);
  *record.mutable_expire_time() = Timestamp(issued->not_after);
  Enrolled enrolled;
  enrolled.step.compares.push_back(Unchanged(record_key, found));
  enrolled.step.operations.push_back(store::Operation::Put(record_key, record.SerializeAsString()));
  enrolled.certificate_chain = std::move(issued->pem);
  enrolled.serial = std::move(issued->serial);
  enrolled.not_after = issued->not_after;
  return enrolled;
}

Refusal BadRequest(const Status& status) {
  return {Kind::kInvalid, "INVALID_FIELDS", status.text(), "certificate_request"};
}

}  // namespace

std::string CertificateKey(const std::string& path) {
  return std::string(model::kCertificatePrefix) + path;
}

EnrolledOrRefusal PlanJoin(const CertificateAuthority& authority, const JoinRequest& request,
                           const Found& token_record, const Found& certificate_record,
                           std::chrono::seconds lifetime, TimePoint now) {
  const auto refuse = [](std::string reason, std::string text) {
    return Refusal{Kind::kUnauthenticated, std::move(reason), std::move(text), {}};
  };
  // The token is checked first: without it nothing is revealed or computed.
  auto token = Parse<JoinTokenRecord>(token_record);
  if (!token_record.has_value()) {
    return refuse("TOKEN_UNKNOWN", "this join token is not known here: make a new one");
  }
  if (TimeOf(token.expire_time()) <= now) {
    return refuse("TOKEN_EXPIRED", "this join token has expired: make a new one");
  }
  if (!token.gateway().empty() && token.gateway() != request.gateway) {
    return refuse("TOKEN_FOR_ANOTHER",
                  "this join token is for another gateway than " + request.gateway);
  }
  auto key = PublicKeyOfRequest(request.certificate_request);
  if (!key.ok()) return BadRequest(key.status());
  const std::string digest = DigestOfKey(**key);
  const bool used = !token.used_by().empty();
  // A host that has used the certificate, or was revoked, may not ask again.
  const bool again =
      used && token.used_by() == request.gateway && token.used_key() == digest &&
      Parse<CertificateRecord>(certificate_record).next_serial() == token.used_serial();
  if (used && !again) {
    return refuse("TOKEN_USED", "this join token was used before: make a new one");
  }
  if (!again && token.gateway().empty() && certificate_record.has_value()) {
    return Refusal{
        Kind::kDenied,
        "NAME_TAKEN",
        request.gateway + " has joined before; for the same name again, make a join token for it",
        {}};
  }
  auto record = Parse<CertificateRecord>(certificate_record);
  record.clear_kubernetes_node();
  record.clear_barred();
  auto enrolled = Enroll(authority, request.gateway, **key, certificate_record, std::move(record),
                         lifetime, now);
  if (auto* const good = std::get_if<Enrolled>(&enrolled)) {
    token.set_used_by(request.gateway);
    token.set_used_key(digest);
    token.set_used_serial(good->serial);
    const std::string token_key = JoinTokenKey(request.token);
    good->step.compares.push_back(Unchanged(token_key, token_record));
    good->step.operations.push_back(store::Operation::Put(token_key, token.SerializeAsString()));
  }
  return enrolled;
}

std::string NameOfKubernetesNode(std::string_view node) {
  return std::string(node.substr(0, node.find('.')));
}

EnrolledOrRefusal PlanPodJoin(const CertificateAuthority& authority, const PodJoinRequest& request,
                              const Found& certificate_record, std::chrono::seconds lifetime,
                              TimePoint now) {
  const auto deny = [](std::string reason, std::string text) {
    return Refusal{Kind::kDenied, std::move(reason), std::move(text), {}};
  };
  const std::string id = model::NameOf(request.gateway).id;
  if (NameOfKubernetesNode(request.node) != id) {
    return deny("OTHER_NODE", "the pod runs on the Kubernetes node " + request.node +
                                  ", which is not " + request.gateway);
  }
  auto record = Parse<CertificateRecord>(certificate_record);
  const std::string remedy =
      "; a join token for the name lets it in: rocegw-controller join-token --gateway " + id;
  if (record.barred()) {
    return deny("NODE_REVOKED",
                "the certificates of " + request.gateway + " were revoked" + remedy);
  }
  if (certificate_record.has_value() && record.kubernetes_node() != request.node) {
    return deny("NAME_TAKEN",
                request.gateway + " has joined before, " +
                    (record.kubernetes_node().empty() ? std::string("by a join token")
                                                      : "as the node " + record.kubernetes_node()) +
                    remedy);
  }
  auto key = PublicKeyOfRequest(request.certificate_request);
  if (!key.ok()) return BadRequest(key.status());
  record.set_kubernetes_node(request.node);
  return Enroll(authority, request.gateway, **key, certificate_record, std::move(record), lifetime,
                now);
}

EnrolledOrRefusal PlanRenew(const CertificateAuthority& authority, const std::string& gateway,
                            const std::string& certificate_request, const std::string& serial,
                            const Found& certificate_record, std::chrono::seconds lifetime,
                            TimePoint now) {
  if (IsRevoked(certificate_record, serial)) {
    return Refusal{Kind::kUnauthenticated,
                   "CERTIFICATE_REVOKED",
                   "the certificate of " + gateway + " was revoked or replaced: join anew",
                   {}};
  }
  auto key = PublicKeyOfRequest(certificate_request);
  if (!key.ok()) return BadRequest(key.status());
  return Enroll(authority, gateway, **key, certificate_record,
                Parse<CertificateRecord>(certificate_record), lifetime, now);
}

Step PlanRevoke(const std::string& path, const Found& certificate_record, TimePoint now,
                Rejoin rejoin) {
  auto record = Parse<CertificateRecord>(certificate_record);
  record.set_least_serial(LeastSerial(IssueTime(record, now)));
  record.clear_next_serial();
  *record.mutable_revoke_time() = Timestamp(now);
  if (rejoin == Rejoin::kByJoinToken) record.set_barred(true);
  const std::string key = CertificateKey(path);
  return {.compares = {Unchanged(key, certificate_record)},
          .operations = {store::Operation::Put(key, record.SerializeAsString())}};
}

bool IsRevoked(const Found& certificate_record, const std::string& serial) {
  return serial < Parse<CertificateRecord>(certificate_record).least_serial();
}

std::optional<Step> PlanFirstUse(const std::string& path, const std::string& serial,
                                 const Found& certificate_record) {
  auto record = Parse<CertificateRecord>(certificate_record);
  if (serial.empty() || record.next_serial() != serial) return std::nullopt;
  record.set_least_serial(serial);
  record.clear_next_serial();
  const std::string key = CertificateKey(path);
  return Step{.compares = {Unchanged(key, certificate_record)},
              .operations = {store::Operation::Put(key, record.SerializeAsString())}};
}

}  // namespace rocegw::identity
