// SPDX-License-Identifier: Apache-2.0
// Preparation of a unix socket for gRPC. gRPC gives no reason for a failure, and takes over a
// socket that another process serves, so the path is tested first. Main thread, start-up.
#pragma once

#include <string>

#include "gateway/base/status.h"

namespace rocegw::process {

struct SocketWords {
  const char* name;  // "gRPC socket"
  const char* keys;  // configuration keys, for the remedy
};

// Removes a socket file without a server. EADDRINUSE: a process serves it.
Status ClaimSocket(const SocketWords& words, const std::string& path);

// Returns "gRPC socket PATH: WHAT: REASON; REMEDY".
std::string ExplainSocket(const SocketWords& words, const std::string& path, const char* what,
                          int error);

}  // namespace rocegw::process
