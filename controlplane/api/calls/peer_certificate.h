// SPDX-License-Identifier: Apache-2.0
// Certificate of a call, for checking if it is still valid. Any thread.
#pragma once

#include <grpcpp/security/auth_context.h>

#include <optional>
#include <string>

#include "controlplane/identity/revocations.h"

namespace rocegw::api {

// Returns the property's first value; empty: none.
std::string Property(const grpc::AuthContext& auth, const char* name);

// Returns nullopt for calls without a certificate, and on the controller's own socket.
std::optional<identity::PeerCertificate> CertificateOf(const grpc::AuthContext& auth);

}  // namespace rocegw::api
