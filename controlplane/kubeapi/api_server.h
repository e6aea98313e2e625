// SPDX-License-Identifier: Apache-2.0
// Client of the API server of the pod's cluster, with the pod's own token. Calls run on a few
// threads of this class, at a bounded rate, from a bounded queue: programs in pods can make an
// agent ask, and a hundred nodes must not overload the API server for them. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "controlplane/kubeapi/https_call.h"
#include "gateway/base/status.h"

namespace rocegw::kubeapi {

struct ApiServerSettings {
  HttpsServer server;
  std::string token_file;                      // read for each call, since kubelet renews it
  std::chrono::milliseconds time_limit{4000};  // for a call, including its wait
  double calls_per_second = 20;
  double burst = 20;  // number of calls
};

// Returns the settings that kubelet gives a pod: KUBERNETES_SERVICE_HOST and _PORT, and the
// directory with ca.crt and token. ENOENT, with an explanation: this process is not in a pod.
StatusOr<ApiServerSettings> InCluster(
    const std::string& folder = "/var/run/secrets/kubernetes.io/serviceaccount");

struct ApiAnswer {
  int status = 0;  // HTTP status
  nlohmann::json object;
};

class ApiServer {
 public:
  static constexpr size_t kMostWaiting = 256;

  // Runs on a thread of this class, or within Call if the queue is full; never after the
  // destructor, which drops waiting calls. Answers other than 2xx are errors too: ENOENT (404),
  // EACCES (401, 403), EEXIST (409), EAGAIN (429, 5xx, and a full queue), EINVAL (other 4xx), with
  // a text for display.
  using Done = std::function<void(const StatusOr<ApiAnswer>&)>;

  explicit ApiServer(ApiServerSettings settings);
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  void Call(HttpRequest request, Done done);

 private:
  struct Waiting {
    HttpRequest request;
    Done done;
    std::chrono::steady_clock::time_point until;
  };
  void Run();
  // Requires the lock. Returns when the next call may begin; takes a token if that is now.
  std::chrono::steady_clock::time_point TakeShare(std::chrono::steady_clock::time_point now);
  StatusOr<ApiAnswer> Answer(const Waiting& waiting) const;

  const ApiServerSettings settings_;
  std::mutex mutex_;  // guards the four fields below
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  double share_;
  std::chrono::steady_clock::time_point filled_at_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace rocegw::kubeapi
