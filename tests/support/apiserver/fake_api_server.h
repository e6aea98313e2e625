// SPDX-License-Identifier: Apache-2.0
// API server of a Kubernetes cluster as far as this project calls it: objects by path over HTTPS,
// with bearer tokens, conflicts by resourceVersion, and reviews of tokens. Serves one call after
// the other on a thread of its own. Methods may be called by any thread.
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
  // folder: an existing one; gets ca.crt and token, as a pod's folder of its service account.
  explicit FakeApiServer(std::string folder);
  ~FakeApiServer();
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  kubeapi::ApiServerSettings settings() const;
  int port() const { return port_; }

  // At a path such as "/api/v1/namespaces/web/pods/a".
  void Put(const std::string& path, nlohmann::json object);
  void Remove(const std::string& path);
  std::optional<nlohmann::json> Find(const std::string& path) const;
  // All objects right below a path.
  std::vector<nlohmann::json> List(const std::string& path) const;

  void PutPod(const std::string& name_space, const std::string& name, const std::string& uid,
              const std::string& account);
  void PutNamespace(const std::string& name, const std::map<std::string, std::string>& labels);
  // A token that reviews (authentication.k8s.io/v1) find to be of this user and node.
  struct Reviewed {
    std::string user;  // "system:serviceaccount:NAMESPACE:NAME"
    std::string node;  // empty: the API server does not say
    std::string audience;
  };
  void PutToken(const std::string& token, Reviewed reviewed);

  // Every call is answered so, until 0.
  void FailWith(int status) { fail_with_ = status; }
  // Bodies come in chunks, as those of long answers.
  void SetChunked(bool chunked) { chunked_ = chunked; }
  // Connections are closed in the middle of the answer.
  void SetCut(bool cut) { cut_ = cut; }
  // Changes an object that a client writes before it is stored: fields that this version of
  // Kubernetes does not have are dropped so.
  void OnWrite(std::function<void(nlohmann::json&)> change);
  // "GET /api/v1/..." of all calls until now.
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
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, nlohmann::json> objects_;
  std::map<std::string, Reviewed> tokens_;
  std::vector<std::string> calls_;
  std::function<void(nlohmann::json&)> on_write_;
  uint64_t version_ = 0;
  std::thread thread_;
};

}  // namespace rocegw::testing
