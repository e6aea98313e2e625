// SPDX-License-Identifier: Apache-2.0
// HTTPS request on a connection of its own: a few requests per minute need no persistent
// connections, and a library for all protocols would add thirty others to a process of root.
// Blocking; any thread that has SIGPIPE blocked or ignored.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "controlplane/kubeapi/http_connection.h"
#include "controlplane/kubeapi/http_response.h"
#include "gateway/base/status.h"

namespace rocegw::kubeapi {

struct HttpsServer {
  std::string host;     // address or DNS name; the server's certificate must match it
  std::string port;     // "443"
  std::string ca_file;  // PEM; the only trusted authorities; empty: those of the system
};

// `token`: for "Authorization: Bearer", without line breaks. Ends early with ECANCELED when `stop`
// becomes true, which is checked ten times a second. Errors: ETIMEDOUT, and those of network and
// TLS. A status other than 2xx is not an error here.
StatusOr<HttpResponse> CallHttps(const HttpsServer& server, const HttpRequest& request,
                                 const std::string& token, std::chrono::milliseconds time_limit,
                                 const std::atomic<bool>& stop);

}  // namespace rocegw::kubeapi
