// SPDX-License-Identifier: Apache-2.0
// Certificates for users and their programs, issued on the controller's host from its state
// directory, with or without a running controller. Role bindings give the holder permissions.
#pragma once

#include <chrono>
#include <string>

#include "controlplane/server/config.h"
#include "gateway/base/status.h"

namespace rocegw::server {

struct UserCertificate {
  std::string uri;      // for role bindings: "spiffe://DOMAIN/user/NAME"
  std::string expires;  // for people
};

// Writes DIRECTORY/NAME.key (0600), NAME.crt and ca.crt.
StatusOr<UserCertificate> MakeUserCertificate(const Config& config, const std::string& name,
                                              std::chrono::seconds lifetime,
                                              const std::string& directory);

}  // namespace rocegw::server
