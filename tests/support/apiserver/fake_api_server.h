// SPDX-License-Identifier: Apache-2.0
// Stand-in of a Kubernetes API server, with the calls that this project makes: objects by path over
// HTTPS, bearer tokens, conflicts by resourceVersion, token reviews. Serves one call at a time on
// its own thread. Any thread may call the methods.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "controlplane/kubeapi/api_server.h"

namespace rocegw::testing {

class FakeApiServer {
 public:
  // Writes ca.crt and token into an existing folder, as in a pod's service account folder.
  explicit FakeApiServer(std::string folder);
  ~FakeApiServer();
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  kubeapi::ApiServerSettings settings() const;
  int port() const { return port_; }

  // Stores an object at a path such as "/api/v1/namespaces/web/pods/a".
  void Put(const std::string& path, nlohmann::json object);
  void Remove(const std::string& path);
  std::optional<nlohmann::json> Find(const std::string& path) const;
  // Returns all objects directly below a path.
  std::vector<nlohmann::json> List(const std::string& path) const;

  void PutPod(const std::string& name_space, const std::string& name, const std::string& uid,
              const std::string& account);
  void PutNamespace(const std::string& name, const std::map<std::string, std::string>& labels);
  // Result of a token's review (authentication.k8s.io/v1).
  struct Reviewed {
    std::string user;  // "system:serviceaccount:NAMESPACE:NAME"
    std::string node;  // empty: the API server does not say
    std::string audience;
  };
  void PutToken(const std::string& token, Reviewed reviewed);

  // Answers each call with this status until it is set to 0.
  void FailWith(int status) { fail_with_ = status; }
  // Sends bodies in chunks, as for long answers.
  void SetChunked(bool chunked) { chunked_ = chunked; }
  // Closes connections in the middle of the answer.
  void SetCut(bool cut) { cut_ = cut; }
  // Sets a function that changes each written object before it is stored, for example to drop
  // fields that a version of Kubernetes does not have.
  void OnWrite(std::function<void(nlohmann::json&)> change);
  // Returns all calls so far, as "GET /api/v1/...".
  std::vector<std::string> calls() const;

 private:
  struct Tls;
  struct Request {
    std::string method;
    std::string path;
    std::string token;
    std::string body;
  };
  using Answer = std::pair<int, nlohmann::json>;

  void Run();
  void Serve(int fd);
  Answer Handle(const Request& request);
  Answer Write(const Request& request, const std::string& path);
  Answer Review(const std::string& body) const;

  const std::string folder_;
  const std::string token_;
  std::unique_ptr<Tls> tls_;
  int listening_ = -1;
  int port_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<int> fail_with_{0};
  std::atomic<bool> chunked_{false};
  std::atomic<bool> cut_{false};
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, nlohmann::json> objects_;
  std::map<std::string, Reviewed> tokens_;
  std::vector<std::string> calls_;
  std::function<void(nlohmann::json&)> on_write_;
  uint64_t version_ = 0;
  std::thread thread_;
};

}  // namespace rocegw::testing
