// SPDX-License-Identifier: Apache-2.0
// admin.v1.Pools: passes each call to the standard methods, or to a gateway of the pool. gRPC's
// threads.
#pragma once

#include "controlplane/api/questions/gateway_questions.h"
#include "controlplane/api/services/standard_service.h"
#include "rocegw/admin/v1/pools.grpc.pb.h"

namespace rocegw::api {

class PoolsService final : public admin::v1::Pools::CallbackService {
 public:
  // All arguments outlive it.
  PoolsService(const Backend& backend, QuestionRouter& router)
      : standard_(backend), questions_{backend, router} {}

  grpc::ServerUnaryReactor* GetPool(grpc::CallbackServerContext* context,
                                    const admin::v1::GetPoolRequest* request,
                                    types::v1::Pool* response) override {
    return standard_.Get(context, *request, response);
  }
  grpc::ServerUnaryReactor* ListPools(grpc::CallbackServerContext* context,
                                      const admin::v1::ListPoolsRequest* request,
                                      admin::v1::ListPoolsResponse* response) override {
    const auto tenant = model::NameOf(request->parent(), true);
    return standard_.List(context, *request, model::Collection::kPools, tenant.id, response,
                          [response] { return response->add_pools(); });
  }
  grpc::ServerWriteReactor<admin::v1::WatchPoolsResponse>* WatchPools(
      grpc::CallbackServerContext* context, const admin::v1::WatchPoolsRequest* request) override {
    const auto tenant = model::NameOf(request->parent(), true);
    return standard_.Watch<admin::v1::WatchPoolsResponse>(
        context, *request, model::Collection::kPools, tenant.id,
        [](admin::v1::WatchPoolsResponse& response) { return response.add_changed(); });
  }
  grpc::ServerUnaryReactor* CreatePool(grpc::CallbackServerContext* context,
                                       const admin::v1::CreatePoolRequest* request,
                                       types::v1::Pool* response) override {
    return standard_.Create(context, *request, request->pool(), response);
  }
  grpc::ServerUnaryReactor* UpdatePool(grpc::CallbackServerContext* context,
                                       const admin::v1::UpdatePoolRequest* request,
                                       types::v1::Pool* response) override {
    return standard_.Update(context, *request, request->pool(), response);
  }
  grpc::ServerUnaryReactor* DeletePool(grpc::CallbackServerContext* context,
                                       const admin::v1::DeletePoolRequest* request,
                                       admin::v1::DeletePoolResponse*) override {
    return standard_.Delete(context, *request);
  }
  grpc::ServerUnaryReactor* ExplainPool(grpc::CallbackServerContext* context,
                                        const admin::v1::ExplainPoolRequest* request,
                                        gateway::v1::ExplainResponse* response) override;
  grpc::ServerWriteReactor<gateway::v1::CaptureChunk>* CapturePool(
      grpc::CallbackServerContext* context, const admin::v1::CapturePoolRequest* request) override;

 private:
  StandardService<types::v1::Pool> standard_;
  const GatewayQuestions questions_;
};

}  // namespace rocegw::api
