// SPDX-License-Identifier: Apache-2.0
#include "tests/support/apiserver/fake_api_server.h"

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <fstream>
#include <stdexcept>

#include "controlplane/identity/certificate_authority.h"

namespace rocegw::testing {
namespace {

using nlohmann::json;

constexpr int kGlanceMs = 20;
constexpr int kPatienceMs = 5000;

template <typename T>
T Must(StatusOr<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().text());
  return std::move(*result);
}

json StatusObject(int code, const std::string& message) {
  return {{"kind", "Status"}, {"status", "Failure"}, {"code", code}, {"message", message}};
}

std::string CollectionOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

struct FakeApiServer::Tls {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  ~Tls() { SSL_CTX_free(context); }
};

FakeApiServer::FakeApiServer(std::string folder)
    : folder_(std::move(folder)), token_("token-of-the-pod"), tls_(std::make_unique<Tls>()) {
  const auto authority = Must(identity::CertificateAuthority::Open(folder_, "cluster.local"));
  const auto key = Must(identity::NewKey());
  const auto issued =
      Must(authority->IssueServer(*key, {"127.0.0.1", "localhost"}, std::chrono::hours(1),
                                  identity::NewSerial(identity::Now())));
  std::ofstream(folder_ + "/server.crt") << issued.pem;
  std::ofstream(folder_ + "/server.key") << Must(identity::KeyToPem(*key));
  std::ofstream(folder_ + "/token") << token_ << "\n";
  SSL_CTX_use_certificate_chain_file(tls_->context, (folder_ + "/server.crt").c_str());
  SSL_CTX_use_PrivateKey_file(tls_->context, (folder_ + "/server.key").c_str(), SSL_FILETYPE_PEM);
  listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listening_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listening_, 64) != 0 ||
      ::getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("the API server of the tests cannot listen");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Run(); });
}

FakeApiServer::~FakeApiServer() {
  stop_ = true;
  thread_.join();
  ::close(listening_);
}

kubeapi::ApiServerSettings FakeApiServer::settings() const {
  kubeapi::ApiServerSettings settings;
  settings.server = {"127.0.0.1", std::to_string(port_), folder_ + "/ca.crt"};
  settings.token_file = folder_ + "/token";
  return settings;
}

void FakeApiServer::Put(const std::string& path, json object) {
  const std::lock_guard lock(mutex_);
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  objects_[path] = std::move(object);
}

void FakeApiServer::Remove(const std::string& path) {
  const std::lock_guard lock(mutex_);
  objects_.erase(path);
}

std::optional<json> FakeApiServer::Find(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(path);
  return found == objects_.end() ? std::nullopt : std::optional<json>(found->second);
}

std::vector<json> FakeApiServer::List(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  std::vector<json> items;
  for (const auto& [at, object] : objects_)
    if (CollectionOf(at) == path) items.push_back(object);
  return items;
}

void FakeApiServer::PutPod(const std::string& name_space, const std::string& name,
                           const std::string& uid, const std::string& account) {
  Put("/api/v1/namespaces/" + name_space + "/pods/" + name,
      {{"kind", "Pod"},
       {"metadata", {{"namespace", name_space}, {"name", name}, {"uid", uid}}},
       {"spec", {{"serviceAccountName", account}}}});
}

void FakeApiServer::PutNamespace(const std::string& name,
                                 const std::map<std::string, std::string>& labels) {
  Put("/api/v1/namespaces/" + name,
      {{"kind", "Namespace"}, {"metadata", {{"name", name}, {"labels", labels}}}});
}

void FakeApiServer::PutToken(const std::string& token, Reviewed reviewed) {
  const std::lock_guard lock(mutex_);
  tokens_[token] = std::move(reviewed);
}

void FakeApiServer::OnWrite(std::function<void(json&)> change) {
  const std::lock_guard lock(mutex_);
  on_write_ = std::move(change);
}

std::vector<std::string> FakeApiServer::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

FakeApiServer::Answer FakeApiServer::Review(const std::string& body) const {
  json review = json::parse(body);
  const json& spec = review["spec"];
  const auto known = tokens_.find(spec.value("token", ""));
  const bool good = known != tokens_.end() &&
                    spec.value("audiences", json::array()) == json::array({known->second.audience});
  review["status"] = {{"authenticated", good}};
  if (!good) {
    review["status"]["error"] = "invalid bearer token";
    return {201, review};
  }
  review["status"]["audiences"] = {known->second.audience};
  review["status"]["user"] = {{"username", known->second.user}};
  if (!known->second.node.empty())
    review["status"]["user"]["extra"] = {
        {"authentication.kubernetes.io/node-name", {known->second.node}}};
  return {201, review};
}

FakeApiServer::Answer FakeApiServer::Write(const Request& request, const std::string& path) {
  json body = json::parse(request.body, nullptr, false);
  if (body.is_discarded()) return {400, StatusObject(400, "the body is no JSON")};
  const std::string at =
      request.method == "POST" ? path + "/" + body["metadata"].value("name", "") : path;
  const auto known = objects_.find(at);
  if (request.method == "POST" && known != objects_.end())
    return {409, StatusObject(409, at + " already exists")};
  if (request.method != "POST" && known == objects_.end())
    return {404, StatusObject(404, at + " not found")};
  if (request.method == "PATCH") {
    json merged = known->second;
    merged.merge_patch(body);
    body = std::move(merged);
  } else if (request.method == "PUT" && body["metadata"].value("resourceVersion", "") !=
                                            known->second["metadata"]["resourceVersion"]) {
    return {409, StatusObject(409, "the object has been modified")};
  }
  if (on_write_) on_write_(body);
  body["metadata"]["resourceVersion"] = std::to_string(++version_);
  if (request.method == "POST") body["metadata"]["uid"] = "uid-" + std::to_string(version_);
  objects_[at] = body;
  return {request.method == "POST" ? 201 : 200, body};
}

FakeApiServer::Answer FakeApiServer::Handle(const Request& request) {
  const std::string path = request.path.substr(0, request.path.find('?'));
  const std::lock_guard lock(mutex_);
  calls_.push_back(request.method + " " + request.path);
  if (fail_with_ != 0) return {fail_with_, StatusObject(fail_with_, "as the test wants it")};
  if (request.token != token_) return {401, StatusObject(401, "Unauthorized")};
  if (request.method == "POST" && path == "/apis/authentication.k8s.io/v1/tokenreviews")
    return Review(request.body);
  if (request.method == "GET") {
    if (const auto known = objects_.find(path); known != objects_.end())
      return {200, known->second};
    json items = json::array();
    for (const auto& [at, object] : objects_)
      if (CollectionOf(at) == path) items.push_back(object);
    // Collections are named in the plural; the last name of an object is its own.
    if (!items.empty() || path.ends_with("s")) return {200, {{"kind", "List"}, {"items", items}}};
    return {404, StatusObject(404, path + " not found")};
  }
  if (request.method == "DELETE") {
    if (objects_.erase(path) == 0) return {404, StatusObject(404, path + " not found")};
    return {200, {{"kind", "Status"}, {"status", "Success"}}};
  }
  return Write(request, path);
}

void FakeApiServer::Run() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  while (!stop_) {
    pollfd one{listening_, POLLIN, 0};
    if (::poll(&one, 1, kGlanceMs) <= 0) continue;
    const int fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const timeval patience{kPatienceMs / 1000, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    Serve(fd);
    ::close(fd);
  }
}

void FakeApiServer::Serve(int fd) {
  SSL* const session = SSL_new(tls_->context);
  SSL_set_fd(session, fd);
  std::string bytes;
  size_t body_at = std::string::npos;
  size_t length = 0;
  if (SSL_accept(session) > 0) {
    char part[8192];
    for (;;) {
      const int got = SSL_read(session, part, sizeof part);
      if (got <= 0) break;
      bytes.append(part, static_cast<size_t>(got));
      if (body_at == std::string::npos && bytes.find("\r\n\r\n") != std::string::npos) {
        body_at = bytes.find("\r\n\r\n") + 4;
        const size_t at = bytes.find("Content-Length: ");
        length = at < body_at ? std::stoul(bytes.substr(at + 16)) : 0;
      }
      if (body_at != std::string::npos && bytes.size() >= body_at + length) break;
    }
  }
  if (body_at != std::string::npos) {
    Request request;
    request.method = bytes.substr(0, bytes.find(' '));
    const size_t path = request.method.size() + 1;
    request.path = bytes.substr(path, bytes.find(' ', path) - path);
    const std::string bearer = "Authorization: Bearer ";
    if (const size_t at = bytes.find(bearer); at < body_at)
      request.token = bytes.substr(at + bearer.size(), bytes.find("\r\n", at) - at - bearer.size());
    request.body = bytes.substr(body_at);
    const Answer answer = Handle(request);
    const std::string body = answer.second.dump();
    std::string out = "HTTP/1.1 " + std::to_string(answer.first) + " Said\r\nConnection: close\r\n";
    if (chunked_) {
      out += "Transfer-Encoding: chunked\r\n\r\n";
      for (size_t at = 0; at < body.size(); at += 7) {
        const std::string piece = body.substr(at, 7);
        char size[16];
        std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
        out += size + piece + "\r\n";
      }
      out += "0\r\n\r\n";
    } else {
      out += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    }
    if (cut_) out.resize(out.size() - 8);
    (void)SSL_write(session, out.data(), static_cast<int>(out.size()));
    if (!cut_) SSL_shutdown(session);
  }
  SSL_free(session);
}

}  // namespace rocegw::testing
