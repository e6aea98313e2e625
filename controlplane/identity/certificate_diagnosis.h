// SPDX-License-Identifier: Apache-2.0
// Whether a certificate is good and being renewed, as one finding. Pure.
#pragma once

#include <string>

#include "controlplane/identity/certificate.h"
#include "rocegw/gateway/v1/debug.pb.h"

namespace rocegw::identity {

// object: whose it is, "gateways/G". Nodes renew at half of the certificate's life.
gateway::v1::Diagnosis DiagnoseCertificate(const std::string& object, TimePoint not_before,
                                           TimePoint not_after, TimePoint now);

}  // namespace rocegw::identity
