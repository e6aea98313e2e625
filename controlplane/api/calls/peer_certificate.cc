// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/calls/peer_certificate.h"

#include "controlplane/identity/certificate.h"

namespace rocegw::api {

std::string Property(const grpc::AuthContext& auth, const char* name) {
  const auto values = auth.FindPropertyValues(name);
  return values.empty() ? std::string() : std::string(values[0].data(), values[0].size());
}

std::optional<identity::PeerCertificate> CertificateOf(const grpc::AuthContext& auth) {
  if (!auth.IsPeerAuthenticated()) return std::nullopt;
  constexpr std::string_view kScheme = "spiffe://";
  const std::string uri = Property(auth, "peer_spiffe_id");
  const std::string pem = Property(auth, "x509_pem_cert");
  if (!uri.starts_with(kScheme) || pem.empty()) return std::nullopt;
  identity::PeerCertificate certificate;
  // gRPC has checked the form, and TLS the signature by our authority.
  if (const size_t slash = uri.find('/', kScheme.size()); slash != std::string::npos) {
    certificate.path = uri.substr(slash + 1);
  }
  if (auto facts = identity::FactsOfPem(pem); facts.ok()) certificate.serial = facts->serial;
  return certificate;
}

}  // namespace rocegw::api
