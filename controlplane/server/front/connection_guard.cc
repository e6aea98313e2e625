// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/front/connection_guard.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "controlplane/api/calls/peer_certificate.h"
#include "controlplane/identity/certificate_authority.h"

namespace rocegw::server {
namespace {

constexpr std::array<std::string_view, 3> kOpen = {"/rocegw.fleet.v1.NodeService/Join",
                                                   "/grpc.health.v1.Health/Check",
                                                   "/grpc.health.v1.Health/Watch"};
constexpr size_t kMostKnown = 8192;

grpc::Status Refuse(const char* why) { return {grpc::StatusCode::UNAUTHENTICATED, why}; }

}  // namespace

std::string PrincipalOf(const grpc::AuthContext& context) {
  return context.IsPeerAuthenticated() ? api::Property(context, "peer_spiffe_id") : std::string();
}

bool IsOpenMethod(std::string_view method) { return std::ranges::count(kOpen, method) != 0; }

ConnectionGuard::Known ConnectionGuard::Read(const std::string& pem) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(pem); known != known_.end()) return known->second;
  }
  Known known;
  if (auto facts = identity::FactsOfPem(pem); facts.ok()) {
    known = {.uri = facts->uri,
             .serial = facts->serial,
             .not_before = facts->not_before,
             .not_after = facts->not_after};
  }
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMostKnown) known_.clear();
  known_.emplace(pem, known);
  return known;
}

grpc::Status ConnectionGuard::Process(const InputMetadata& metadata, grpc::AuthContext* context,
                                      OutputMetadata*, OutputMetadata*) {
  const auto path = metadata.find(":path");
  if (path == metadata.end()) return Refuse("the call has no path");
  if (const std::string principal = PrincipalOf(*context);
      !principal.empty() && !calls_.Begin(principal)) {
    expel_(principal);
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls are in progress"};
  }
  const std::string_view method(path->second.data(), path->second.size());
  if (IsOpenMethod(method)) return grpc::Status::OK;
  if (!context->IsPeerAuthenticated()) {
    return Refuse("a client certificate is needed; without one only Join and health are answered");
  }
  const Known known = Read(api::Property(*context, "x509_pem_cert"));
  const std::string name = identity::PathOfUri(domain_, known.uri);
  if (name.empty()) return Refuse("the client certificate has no URI name of this fleet");
  if (known.not_before > identity::Now()) {
    return Refuse("the client certificate is not valid yet: a clock is wrong");
  }
  if (known.not_after <= identity::Now()) return Refuse("the client certificate has expired");
  if (!revocations_.IsGood({.path = name, .serial = known.serial})) {
    return Refuse("the client certificate was revoked, or replaced by a newer one");
  }
  return grpc::Status::OK;
}

}  // namespace rocegw::server
