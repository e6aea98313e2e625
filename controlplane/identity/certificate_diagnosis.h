// SPDX-License-Identifier: Apache-2.0
// Checks of certificates' validity as findings with remedies. Pure; docs/operate/doctor.md lists
// the findings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controlplane/identity/certificate.h"
#include "rocegw/gateway/v1/debug.pb.h"

namespace rocegw::identity {

// Checks the certificate of a gateway's agent, which renews it at half of its life. `object`:
// "gateways/G".
gateway::v1::Diagnosis DiagnoseCertificate(const std::string& object, TimePoint issued,
                                           TimePoint not_after, TimePoint now);

// Certificates behind calls to a controller, as the caller sees them.
struct CallerView {
  X509* server = nullptr;  // the controller's; null: unknown
  std::string host;        // name that the caller asked for; empty: not over a network
  std::vector<X509Certificate> trusted;  // authorities that the caller trusts
  std::string trusted_file;              // file of these
  bool needs_own = false;                // the caller needs a certificate, too
  std::optional<CertificateFacts> own;
};

// Checks the controller's, the authority's, and if needed the caller's certificate.
std::vector<gateway::v1::Diagnosis> DiagnoseCaller(const CallerView& view, TimePoint now);

}  // namespace rocegw::identity
