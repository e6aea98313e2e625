// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/front/member_notice.h"

#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>

#include <string>

#include "controlplane/api/calls/peer_certificate.h"
#include "controlplane/server/front/connection_guard.h"
#include "controlplane/server/front/peer_address.h"

namespace rocegw::server {

grpc::experimental::Interceptor* MemberNotice::CreateServerInterceptor(
    grpc::experimental::ServerRpcInfo* info) {
  // The guard checks no certificate for calls that need none.
  if (IsOpenMethod(info->method())) return nullptr;
  const auto* const context = info->server_context();
  // gRPC calls this before the context of a synchronous method has its call. Reflection, the only
  // such service, makes no connection a member's.
  const auto auth = context->auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return nullptr;
  const std::string peer = PeerKey(context->peer());
  if (!peer.empty()) front_.Admit(peer, api::Property(*auth, "peer_spiffe_id"));
  return nullptr;
}

}  // namespace rocegw::server
