// SPDX-License-Identifier: Apache-2.0
// Certificate that a server shows in a TLS handshake, trusted or not: gRPC only reports that it is
// not trusted. Blocks at most until the deadline.
#pragma once

#include <chrono>
#include <string>

#include "controlplane/identity/openssl.h"

namespace rocegw::cli {

// `address`: "HOST:PORT". `server_name`: name to ask for.
StatusOr<identity::X509Certificate> CertificateShownBy(const std::string& address,
                                                       const std::string& server_name,
                                                       std::chrono::milliseconds patience);

// Returns "HOST" of "HOST:PORT", without the brackets of an IPv6 address.
std::string HostOf(const std::string& address);

}  // namespace rocegw::cli
