// SPDX-License-Identifier: Apache-2.0
// Whose certificate a call came with, for those who ask whether it is still good. Any thread.
#pragma once

#include <grpcpp/security/auth_context.h>

#include <optional>
#include <string>

#include "controlplane/identity/revocations.h"

namespace rocegw::api {

// Its first value; empty: it has none.
std::string Property(const grpc::AuthContext& auth, const char* name);

// nullopt: without a certificate, or on the controller's own socket.
std::optional<identity::PeerCertificate> CertificateOf(const grpc::AuthContext& auth);

}  // namespace rocegw::api
