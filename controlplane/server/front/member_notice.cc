// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/front/member_notice.h"

#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>

#include <string>
#include <utility>

#include "controlplane/server/front/connection_guard.h"
#include "controlplane/server/front/peer_address.h"

namespace rocegw::server {

namespace {

// Reports the end of its call; changes nothing.
class CallEnd final : public grpc::experimental::Interceptor {
 public:
  CallEnd(OpenCalls& calls, std::string principal)
      : calls_(calls),
        principal_(std::move(principal)),
        generation_(calls.Generation(principal_)) {}
  CallEnd(const CallEnd&) = delete;
  CallEnd& operator=(const CallEnd&) = delete;
  ~CallEnd() override { calls_.End(principal_, generation_); }

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    methods->Proceed();
  }

 private:
  OpenCalls& calls_;
  const std::string principal_;
  const uint64_t generation_;
};

}  // namespace

grpc::experimental::Interceptor* MemberNotice::CreateServerInterceptor(
    grpc::experimental::ServerRpcInfo* info) {
  const auto* const context = info->server_context();
  // gRPC calls this before the context of a synchronous method has its call. Reflection, the only
  // such service, makes no connection a member's.
  const auto auth = context->auth_context();
  if (auth == nullptr) return nullptr;
  std::string principal = PrincipalOf(*auth);
  if (principal.empty()) return nullptr;
  // The guard checks no certificate for calls that need none.
  const std::string peer = PeerKey(context->peer());
  if (!peer.empty() && !IsOpenMethod(info->method())) front_.Admit(peer, principal);
  return new CallEnd(calls_, std::move(principal));
}

}  // namespace rocegw::server
