// SPDX-License-Identifier: Apache-2.0
// HTTP or HTTPS request to a server that a URL names, for servers other than the API server.
// Blocking; any thread that has SIGPIPE blocked or ignored.
#pragma once

#include <string>
#include <string_view>

#include "controlplane/kubeapi/https_call.h"

namespace rocegw::kubeapi {

struct HttpUrl {
  bool tls = false;
  std::string host;
  std::string port;
  std::string path;     // "" or "/prometheus"
  std::string ca_file;  // as in HttpsServer; not a part of the URL
};

// Reads "http[s]://HOST[:PORT][/PATH]" without user, query and fragment. `problem`: one line.
HttpUrl ReadHttpUrl(std::string_view text, std::string& problem);

// `request.path`: the whole path; that of the URL is not added. As CallHttps otherwise.
StatusOr<HttpResponse> CallUrl(const HttpUrl& url, const HttpRequest& request,
                               const std::string& token, std::chrono::milliseconds time_limit,
                               const std::atomic<bool>& stop);

}  // namespace rocegw::kubeapi
