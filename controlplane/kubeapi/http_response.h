// SPDX-License-Identifier: Apache-2.0
// Reader of a whole HTTP/1.1 response (RFC 9112). Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "gateway/base/status.h"

namespace rocegw::kubeapi {

struct HttpResponse {
  int status = 0;    // 200 ... 599
  std::string body;  // decoded, if the server sent it in chunks
};

// bytes: all that the server sent until it closed the connection. EBADMSG: the bytes are no
// response, or end before the response does.
StatusOr<HttpResponse> ParseHttpResponse(std::string_view bytes);

}  // namespace rocegw::kubeapi
