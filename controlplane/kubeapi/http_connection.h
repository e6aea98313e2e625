// SPDX-License-Identifier: Apache-2.0
// What HTTP and HTTPS requests share: connecting within a time limit, and the head of a request.
// Blocking; any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::kubeapi {

struct HttpRequest {
  std::string method;        // "GET"
  std::string path;          // "/api/v1/namespaces/web"
  std::string content_type;  // type of the body
  std::string body;
};

inline constexpr size_t kLargestResponse = 16 << 20;

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

// `token`: for "Authorization: Bearer", without line breaks.
std::string HeadOf(const std::string& host, const std::string& port, const HttpRequest& request,
                   const std::string& token);

}  // namespace rocegw::kubeapi
