// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/nodes/pod_review.h"

#include <arpa/inet.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "controlplane/identity/openssl.h"
#include "controlplane/kubeapi/token_review.h"

namespace rocegw::api {
namespace {

constexpr size_t kPrefixBytes = 8;  // part of an IPv6 address that names a host

SecretKey NewSecretKey() {
  SecretKey key;
  const std::string random = identity::RandomBytes(sizeof key);
  std::memcpy(&key, random.data(), sizeof key);
  return key;
}

std::string UserOf(const std::string& account) {
  const size_t slash = account.find('/');
  return "system:serviceaccount:" + account.substr(0, slash) + ":" + account.substr(slash + 1);
}

}  // namespace

std::string SourceOf(std::string_view grpc_peer) {
  if (grpc_peer.starts_with("ipv4:")) return std::string(grpc_peer.substr(0, grpc_peer.rfind(':')));
  if (!grpc_peer.starts_with("ipv6:")) return std::string(grpc_peer);
  // gRPC writes "ipv6:%5BADDRESS%25ZONE%5D:PORT".
  std::string text(grpc_peer.substr(5));
  if (text.starts_with("%5B") || text.starts_with("%5b")) text.erase(0, 3);
  if (text.starts_with("[")) text.erase(0, 1);
  text = text.substr(0, text.find_first_of("%]"));
  in6_addr address{};
  if (inet_pton(AF_INET6, text.c_str(), &address) != 1) return std::string(grpc_peer);
  if (IN6_IS_ADDR_V4MAPPED(&address)) return std::string(reinterpret_cast<char*>(&address), 16);
  return std::string(reinterpret_cast<char*>(&address), kPrefixBytes);
}

PodReview::PodReview(kubeapi::ApiServer& api, PodReviewSettings settings)
    : api_(api),
      settings_(std::move(settings)),
      user_(UserOf(settings_.account)),
      together_(settings_.per_second, settings_.burst),
      sources_(NewSecretKey(), settings_.per_second_and_source, settings_.burst_of_source) {}

bool PodReview::TakeShare(const std::string& source, TimePoint now) {
  const std::string address = SourceOf(source);
  const std::lock_guard lock(mutex_);
  // A source beyond its limit takes nothing of the others' share.
  return sources_.Take({reinterpret_cast<const uint8_t*>(address.data()), address.size()}, now) &&
         together_.Take(now);
}

void PodReview::Review(const std::string& source, const std::string& token, TimePoint now,
                       Done done) {
  if (!TakeShare(source, now)) {
    ++limited_;
    return done(ApiError{grpc::StatusCode::RESOURCE_EXHAUSTED,
                         "TOO_MANY_JOINS",
                         "too many pods join at once; try again in a moment",
                         {},
                         {}});
  }
  api_.Call(kubeapi::TokenReviewRequest(token, settings_.audience),
            [this, source, done = std::move(done)](const StatusOr<kubeapi::ApiAnswer>& answer) {
              auto outcome = Judge(answer);
              if (const auto* const error = std::get_if<ApiError>(&outcome))
                spdlog::warn("a pod's token does not let {} join: {}", source, error->message);
              done(std::move(outcome));
            });
}

std::variant<std::string, ApiError> PodReview::Judge(const StatusOr<kubeapi::ApiAnswer>& answer) {
  if (!answer.ok()) {
    ++failed_;
    // A controller without the right to ask is a fault of its set-up, not of the caller's token.
    return ApiError{
        grpc::StatusCode::UNAVAILABLE, "NO_TOKEN_REVIEW", answer.status().text(), {}, {}};
  }
  const auto refuse = [this](std::string reason, std::string text) -> ApiError {
    ++refused_;
    return {grpc::StatusCode::UNAUTHENTICATED, std::move(reason), std::move(text), {}, {}};
  };
  const auto token = kubeapi::ReadTokenReview(answer.value().object, settings_.audience);
  if (!token.ok()) return refuse("TOKEN_UNKNOWN", token.status().text());
  if (token.value().user != user_) {
    return refuse("OTHER_ACCOUNT",
                  "the token is " + token.value().user + "'s, and agents run as " + user_);
  }
  if (token.value().node.empty()) {
    return refuse("NO_NODE",
                  "the API server does not tell the token's node: this takes a token of a running "
                  "pod, and Kubernetes 1.30 or later");
  }
  ++confirmed_;
  return token.value().node;
}

PodReviewCounts PodReview::counts() const { return {confirmed_, refused_, limited_, failed_}; }

}  // namespace rocegw::api
