// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/services/operations_service.h"

#include "controlplane/api/calls/unary_call.h"
#include "controlplane/api/calls/wait_reactor.h"
#include "controlplane/api/writes/drain.h"
#include "controlplane/controllers/operations.h"

namespace rocegw::api {

grpc::ServerUnaryReactor* OperationsService::GetOperation(
    grpc::CallbackServerContext* context, const admin::v1::GetOperationRequest* request,
    types::v1::Operation* response) {
  return standard_.Get(context, *request, response);
}

grpc::ServerUnaryReactor* OperationsService::ListOperations(
    grpc::CallbackServerContext* context, const admin::v1::ListOperationsRequest* request,
    admin::v1::ListOperationsResponse* response) {
  return standard_.List(context, *request, model::Collection::kOperations, {}, response,
                        [response] { return response->add_operations(); });
}

grpc::ServerWriteReactor<admin::v1::WatchOperationsResponse>* OperationsService::WatchOperations(
    grpc::CallbackServerContext* context, const admin::v1::WatchOperationsRequest* request) {
  return standard_.Watch<admin::v1::WatchOperationsResponse>(
      context, *request, model::Collection::kOperations, {},
      [](admin::v1::WatchOperationsResponse& response) { return response.add_changed(); });
}

grpc::ServerUnaryReactor* OperationsService::WaitOperation(
    grpc::CallbackServerContext* context, const admin::v1::WaitOperationRequest* request,
    types::v1::Operation* response) {
  Admitted admitted;
  if (auto error = Admit(*context, CallKind::kUnary, *request, backend_.follower, admitted)) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(ToStatus(*error));
    return reactor;
  }
  auto* const reactor = new WaitReactor(
      backend_.follower, [name = request->name(), response](const sync::Fleet& fleet) {
        const auto known = fleet.view.operations.find(name);
        if (known == fleet.view.operations.end())
          return WaitReactor::Look{true, ToStatus(NotFound(name))};
        *response = known->second.object;
        *response->mutable_status() = controllers::StandOf(fleet.view, known->second.object);
        return WaitReactor::Look{response->status().done(), grpc::Status::OK};
      });
  // A caller that learned of the operation from another controller may wait for it.
  backend_.follower.WhenNewest([reactor, deadline = context->deadline()](
                                   const StatusOr<store::Revision>&) { reactor->Start(deadline); });
  return reactor;
}

grpc::ServerUnaryReactor* OperationsService::CancelOperation(
    grpc::CallbackServerContext* context, const admin::v1::CancelOperationRequest* request,
    types::v1::Operation* response) {
  return standard_.Write(
      context, *request, {}, response,
      [name = request->name(), birth = NewBirth()](const sync::Fleet& fleet) -> PlanOrError {
        const auto known = fleet.view.operations.find(name);
        if (known == fleet.view.operations.end()) return NotFound(name);
        if (controllers::StandOf(fleet.view, known->second.object).done())
          return FailedPrecondition("DONE", name + " is done already");
        return PlanCancelDrain(fleet, known->second.object, birth);
      });
}

}  // namespace rocegw::api
