// SPDX-License-Identifier: Apache-2.0
// Listening TCP socket of the TLS port.
#pragma once

#include <string>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::server {

struct ListeningSocket {
  UniqueFd fd;  // non-blocking
  int port = 0;
};

// `address`: "10.0.0.1:7471", "[::]:7471". Callers wait in the kernel's queue until they are
// accepted.
StatusOr<ListeningSocket> ListenAt(const std::string& address);

}  // namespace rocegw::server
