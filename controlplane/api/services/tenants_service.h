// SPDX-License-Identifier: Apache-2.0
// admin.v1.Tenants: passes each call to the standard methods. gRPC's threads.
#pragma once

#include "controlplane/api/services/standard_service.h"
#include "rocegw/admin/v1/tenants.grpc.pb.h"

namespace rocegw::api {

class TenantsService final : public admin::v1::Tenants::CallbackService {
 public:
  explicit TenantsService(const Backend& backend) : standard_(backend) {}

  grpc::ServerUnaryReactor* GetTenant(grpc::CallbackServerContext* context,
                                      const admin::v1::GetTenantRequest* request,
                                      types::v1::Tenant* response) override {
    return standard_.Get(context, *request, response);
  }
  grpc::ServerUnaryReactor* ListTenants(grpc::CallbackServerContext* context,
                                        const admin::v1::ListTenantsRequest* request,
                                        admin::v1::ListTenantsResponse* response) override {
    return standard_.List(context, *request, model::Collection::kTenants, {}, response,
                          [response] { return response->add_tenants(); });
  }
  grpc::ServerWriteReactor<admin::v1::WatchTenantsResponse>* WatchTenants(
      grpc::CallbackServerContext* context,
      const admin::v1::WatchTenantsRequest* request) override {
    return standard_.Watch<admin::v1::WatchTenantsResponse>(
        context, *request, model::Collection::kTenants, {},
        [](admin::v1::WatchTenantsResponse& response) { return response.add_changed(); });
  }
  grpc::ServerUnaryReactor* CreateTenant(grpc::CallbackServerContext* context,
                                         const admin::v1::CreateTenantRequest* request,
                                         types::v1::Tenant* response) override {
    return standard_.Create(context, *request, request->tenant(), response);
  }
  grpc::ServerUnaryReactor* UpdateTenant(grpc::CallbackServerContext* context,
                                         const admin::v1::UpdateTenantRequest* request,
                                         types::v1::Tenant* response) override {
    return standard_.Update(context, *request, request->tenant(), response);
  }
  grpc::ServerUnaryReactor* DeleteTenant(grpc::CallbackServerContext* context,
                                         const admin::v1::DeleteTenantRequest* request,
                                         admin::v1::DeleteTenantResponse*) override {
    return standard_.Delete(context, *request);
  }

 private:
  StandardService<types::v1::Tenant> standard_;
};

}  // namespace rocegw::api
