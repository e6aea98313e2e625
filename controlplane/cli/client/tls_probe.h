// SPDX-License-Identifier: Apache-2.0
// What a server shows in a TLS handshake, whether one would trust it or not: gRPC says only that it
// does not. Blocks until the deadline at most.
#pragma once

#include <chrono>
#include <string>

#include "controlplane/identity/openssl.h"

namespace rocegw::cli {

// address: "HOST:PORT". server_name: whom to ask for.
StatusOr<identity::X509Certificate> CertificateShownBy(const std::string& address,
                                                       const std::string& server_name,
                                                       std::chrono::milliseconds patience);

// "HOST" of "HOST:PORT", without the brackets of an IPv6 address.
std::string HostOf(const std::string& address);

}  // namespace rocegw::cli
