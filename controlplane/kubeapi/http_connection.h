// SPDX-License-Identifier: Apache-2.0
// Common parts of HTTP and HTTPS requests: connecting within a time limit, the head of a request,
// and its exchange for a response. Blocking; any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "controlplane/kubeapi/http_response.h"
#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::kubeapi {

struct HttpRequest {
  std::string method;        // "GET"
  std::string path;          // "/api/v1/namespaces/web"
  std::string content_type;  // type of the body
  std::string body;
};

// Deadline and cancellation of a call.
class Patience {
 public:
  Patience(std::chrono::milliseconds limit, const std::atomic<bool>& stop)
      : until_(std::chrono::steady_clock::now() + limit), stop_(stop) {}

  // Waits until the descriptor is ready for `events`. ECANCELED when `stop` becomes true.
  Status Await(int fd, short events) const;

 private:
  const std::chrono::steady_clock::time_point until_;
  const std::atomic<bool>& stop_;
};

StatusOr<UniqueFd> ConnectTo(const std::string& host, const std::string& port,
                             const Patience& patience);

// Moves bytes of a stream. Returns how many; 0: the other side has closed it.
using WriteSome = std::function<StatusOr<size_t>(const char* bytes, size_t size)>;
using ReadSome = std::function<StatusOr<size_t>(char* bytes, size_t size)>;

inline constexpr size_t kLargestResponse = 16 << 20;

// Sends a request, and reads the response until the server closes the stream.
StatusOr<HttpResponse> Exchange(const std::string& request, const WriteSome& write,
                                const ReadSome& read);

// `token`: for "Authorization: Bearer", without line breaks.
std::string HeadOf(const std::string& host, const std::string& port, const HttpRequest& request,
                   const std::string& token);

}  // namespace rocegw::kubeapi
