// SPDX-License-Identifier: Apache-2.0
// Whether certificates are good, and stay so, as findings with remedies. Pure; what is found when
// is in docs/operate/doctor.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controlplane/identity/certificate.h"
#include "rocegw/gateway/v1/debug.pb.h"

namespace rocegw::identity {

// Of a gateway's agent, which renews it at half of its life. object: "gateways/G".
gateway::v1::Diagnosis DiagnoseCertificate(const std::string& object, TimePoint issued,
                                           TimePoint not_after, TimePoint now);

// What stands behind calls to a controller, as the caller sees it.
struct CallerView {
  X509* server = nullptr;                // what it shows; null: not known
  std::string host;                      // whom the caller asked for; empty: over no network
  std::vector<X509Certificate> trusted;  // whose certificates the caller takes
  std::string trusted_file;              // where they are
  bool needs_own = false;                // the caller must show one, too
  std::optional<CertificateFacts> own;
};

// Of the controller, of the fleet's authority, and of the caller where it needs one.
std::vector<gateway::v1::Diagnosis> DiagnoseCaller(const CallerView& view, TimePoint now);

}  // namespace rocegw::identity
