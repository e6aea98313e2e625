// SPDX-License-Identifier: Apache-2.0
// The place of a unix socket on which gRPC is to listen. gRPC tells nothing about why it could not,
// and takes over a socket that another process serves, so the place is tried out first. Main
// thread, start-up.
#pragma once

#include <string>

#include "gateway/base/status.h"

namespace rocegw::process {

struct SocketWords {
  const char* name;  // "gRPC socket"
  const char* keys;  // of the configuration, for the remedy
};

// Removes a socket file that nobody serves. EADDRINUSE: somebody does.
Status ClaimSocket(const SocketWords& words, const std::string& path);

// "gRPC socket PATH: WHAT: REASON; REMEDY"
std::string ExplainSocket(const SocketWords& words, const std::string& path, const char* what,
                          int error);

}  // namespace rocegw::process
