// SPDX-License-Identifier: Apache-2.0
// One HTTPS request on a connection of its own: some requests a minute need no kept connections,
// and a library for all protocols would bring thirty others into a process of root. Blocking; any
// thread that has SIGPIPE blocked or ignored.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "controlplane/kubeapi/http_response.h"
#include "gateway/base/status.h"

namespace rocegw::kubeapi {

struct HttpsServer {
  std::string host;     // address or DNS name; the server's certificate must be for it
  std::string port;     // "443"
  std::string ca_file;  // PEM; the only authorities that count
};

struct HttpRequest {
  std::string method;        // "GET"
  std::string path;          // "/api/v1/namespaces/web"
  std::string content_type;  // of the body
  std::string body;
};

// token: for "Authorization: Bearer"; no line breaks in it. Ends early with ECANCELED when `stop`
// becomes true, which is looked at ten times a second. Errors: ETIMEDOUT, and what the network or
// TLS says. A status other than 2xx is no error here.
StatusOr<HttpResponse> CallHttps(const HttpsServer& server, const HttpRequest& request,
                                 const std::string& token, std::chrono::milliseconds time_limit,
                                 const std::atomic<bool>& stop);

}  // namespace rocegw::kubeapi
