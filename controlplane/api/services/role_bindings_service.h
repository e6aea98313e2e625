// SPDX-License-Identifier: Apache-2.0
// admin.v1.RoleBindings: passes each call to the standard methods. gRPC's threads.
#pragma once

#include "controlplane/api/services/standard_service.h"
#include "rocegw/admin/v1/role_bindings.grpc.pb.h"

namespace rocegw::api {

class RoleBindingsService final : public admin::v1::RoleBindings::CallbackService {
 public:
  explicit RoleBindingsService(const Backend& backend) : standard_(backend) {}

  grpc::ServerUnaryReactor* GetRoleBinding(grpc::CallbackServerContext* context,
                                           const admin::v1::GetRoleBindingRequest* request,
                                           types::v1::RoleBinding* response) override {
    return standard_.Get(context, *request, response);
  }
  grpc::ServerUnaryReactor* ListRoleBindings(
      grpc::CallbackServerContext* context, const admin::v1::ListRoleBindingsRequest* request,
      admin::v1::ListRoleBindingsResponse* response) override {
    return standard_.List(context, *request, model::Collection::kRoleBindings, {}, response,
                          [response] { return response->add_role_bindings(); });
  }
  grpc::ServerWriteReactor<admin::v1::WatchRoleBindingsResponse>* WatchRoleBindings(
      grpc::CallbackServerContext* context,
      const admin::v1::WatchRoleBindingsRequest* request) override {
    return standard_.Watch<admin::v1::WatchRoleBindingsResponse>(
        context, *request, model::Collection::kRoleBindings, {},
        [](admin::v1::WatchRoleBindingsResponse& response) { return response.add_changed(); });
  }
  grpc::ServerUnaryReactor* CreateRoleBinding(grpc::CallbackServerContext* context,
                                              const admin::v1::CreateRoleBindingRequest* request,
                                              types::v1::RoleBinding* response) override {
    return standard_.Create(context, *request, request->role_binding(), response);
  }
  grpc::ServerUnaryReactor* UpdateRoleBinding(grpc::CallbackServerContext* context,
                                              const admin::v1::UpdateRoleBindingRequest* request,
                                              types::v1::RoleBinding* response) override {
    return standard_.Update(context, *request, request->role_binding(), response);
  }
  grpc::ServerUnaryReactor* DeleteRoleBinding(grpc::CallbackServerContext* context,
                                              const admin::v1::DeleteRoleBindingRequest* request,
                                              admin::v1::DeleteRoleBindingResponse*) override {
    return standard_.Delete(context, *request);
  }

 private:
  StandardService<types::v1::RoleBinding> standard_;
};

}  // namespace rocegw::api
