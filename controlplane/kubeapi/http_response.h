// SPDX-License-Identifier: Apache-2.0
// Parser of a complete HTTP/1.1 response (RFC 9112). Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "gateway/base/status.h"

namespace rocegw::kubeapi {

struct HttpResponse {
  int status = 0;    // 200 ... 599
  std::string body;  // without chunked encoding
};

// `bytes`: all bytes until the server closed the connection. EBADMSG: not a response, or
// incomplete.
StatusOr<HttpResponse> ParseHttpResponse(std::string_view bytes);

}  // namespace rocegw::kubeapi
