// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/services/pools_service.h"

namespace rocegw::api {
namespace {

// Protects tenants' packets and refusals: the gateway limits its answer to this pool, which must
// belong to the tenant of the admission.
std::optional<ApiError> CheckOneTenant(const std::string& pool) {
  if (model::NameOf(pool, true).Tenant() != "tenants/-") return std::nullopt;
  return InvalidArgument({{"name", "must name one tenant; its pool may be '-'"}});
}

}  // namespace

grpc::ServerUnaryReactor* PoolsService::ExplainPool(grpc::CallbackServerContext* context,
                                                    const admin::v1::ExplainPoolRequest* request,
                                                    gateway::v1::ExplainResponse* response) {
  fleet::v1::TunnelQuestion question;
  *question.mutable_explain() = request->explain();
  question.mutable_explain()->set_pool(request->name());
  // Admission has refused invalid names.
  if (model::ParseResourceName(request->name(), true).has_value()) {
    if (auto error = CheckOneTenant(request->name())) {
      const auto refuse = [&](grpc::ServerUnaryReactor* reactor, const Admitted&) {
        reactor->Finish(ToStatus(*error));
      };
      return WhenAdmitted(*context, *request, questions_.backend.follower, refuse);
    }
  }
  return AskGateway(*context, *request, questions_, request->gateway(), question, response);
}

grpc::ServerWriteReactor<gateway::v1::CaptureChunk>* PoolsService::CapturePool(
    grpc::CallbackServerContext* context, const admin::v1::CapturePoolRequest* request) {
  Admitted admitted;
  if (auto error =
          Admit(*context, CallKind::kStream, *request, questions_.backend.follower, admitted)) {
    return RefusedCapture(*error);
  }
  if (auto error = CheckOneTenant(request->name())) return RefusedCapture(*error);
  gateway::v1::CaptureRequest capture = request->capture();
  capture.set_pool(request->name());
  return NewCapture(*context, questions_, admitted, *request, request->gateway(), capture);
}

}  // namespace rocegw::api
