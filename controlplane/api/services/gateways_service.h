// SPDX-License-Identifier: Apache-2.0
// admin.v1.Gateways: gateways as stored objects, their drains, admission of hosts, and gateways'
// own data through their agents' tunnels. gRPC's threads.
#pragma once

#include "controlplane/api/nodes/enrollment.h"
#include "controlplane/api/nodes/fleet_adoption.h"
#include "controlplane/api/questions/connectivity_test.h"
#include "controlplane/api/questions/gateway_questions.h"
#include "controlplane/api/services/standard_service.h"
#include "controlplane/sync/node_hub.h"
#include "rocegw/admin/v1/gateways.grpc.pb.h"

namespace rocegw::api {

class GatewaysService final : public admin::v1::Gateways::CallbackService {
 public:
  // All arguments outlive it.
  GatewaysService(const Backend& backend, sync::NodeHub& hub, Replicas& replicas,
                  QuestionRouter& router, Enrollment& enrollment)
      : backend_(backend),
        hub_(hub),
        replicas_(replicas),
        questions_{backend, router},
        enrollment_(enrollment),
        adoption_(backend.store, hub, replicas),
        standard_(backend),
        operations_(backend) {}

  grpc::ServerUnaryReactor* GetGateway(grpc::CallbackServerContext* context,
                                       const admin::v1::GetGatewayRequest* request,
                                       types::v1::Gateway* response) override;
  grpc::ServerUnaryReactor* ListGateways(grpc::CallbackServerContext* context,
                                         const admin::v1::ListGatewaysRequest* request,
                                         admin::v1::ListGatewaysResponse* response) override;
  grpc::ServerWriteReactor<admin::v1::WatchGatewaysResponse>* WatchGateways(
      grpc::CallbackServerContext* context,
      const admin::v1::WatchGatewaysRequest* request) override;
  grpc::ServerUnaryReactor* CreateGateway(grpc::CallbackServerContext* context,
                                          const admin::v1::CreateGatewayRequest* request,
                                          types::v1::Gateway* response) override;
  grpc::ServerUnaryReactor* UpdateGateway(grpc::CallbackServerContext* context,
                                          const admin::v1::UpdateGatewayRequest* request,
                                          types::v1::Gateway* response) override;
  grpc::ServerUnaryReactor* DeleteGateway(grpc::CallbackServerContext* context,
                                          const admin::v1::DeleteGatewayRequest* request,
                                          admin::v1::DeleteGatewayResponse* response) override;

  grpc::ServerUnaryReactor* DrainGateway(grpc::CallbackServerContext* context,
                                         const admin::v1::DrainGatewayRequest* request,
                                         types::v1::Operation* response) override;
  grpc::ServerUnaryReactor* UndrainGateway(grpc::CallbackServerContext* context,
                                           const admin::v1::UndrainGatewayRequest* request,
                                           types::v1::Gateway* response) override;
  grpc::ServerUnaryReactor* RevokeGateway(grpc::CallbackServerContext* context,
                                          const admin::v1::RevokeGatewayRequest* request,
                                          admin::v1::RevokeGatewayResponse* response) override;
  grpc::ServerUnaryReactor* RotateFleetKeys(grpc::CallbackServerContext* context,
                                            const admin::v1::RotateFleetKeysRequest* request,
                                            admin::v1::RotateFleetKeysResponse* response) override;
  grpc::ServerUnaryReactor* AdoptFleet(grpc::CallbackServerContext* context,
                                       const admin::v1::AdoptFleetRequest* request,
                                       admin::v1::AdoptFleetResponse* response) override;
  grpc::ServerUnaryReactor* CreateJoinToken(grpc::CallbackServerContext* context,
                                            const admin::v1::CreateJoinTokenRequest* request,
                                            admin::v1::CreateJoinTokenResponse* response) override;
  grpc::ServerUnaryReactor* GetFleetProgress(
      grpc::CallbackServerContext* context, const admin::v1::GetFleetProgressRequest* request,
      admin::v1::GetFleetProgressResponse* response) override;

  grpc::ServerUnaryReactor* GetGatewayStatus(grpc::CallbackServerContext* context,
                                             const admin::v1::GetGatewayStatusRequest* request,
                                             types::v1::GatewayStatus* response) override;
  // Lists of the gateway's objects, which the gateway answers itself.
#define ROCEGW_LIST_OF_GATEWAY(Objects)                                                          \
  grpc::ServerUnaryReactor* ListGateway##Objects(                                                \
      grpc::CallbackServerContext* context, const admin::v1::ListGatewayObjectsRequest* request, \
      gateway::v1::List##Objects##Response* response) override {                                 \
    return ListOfGateway(*context, *request, questions_, response);                              \
  }
  ROCEGW_LIST_OF_GATEWAY(Sessions)
  ROCEGW_LIST_OF_GATEWAY(Qps)
  ROCEGW_LIST_OF_GATEWAY(Connections)
  ROCEGW_LIST_OF_GATEWAY(Channels)
  ROCEGW_LIST_OF_GATEWAY(Mrs)
  ROCEGW_LIST_OF_GATEWAY(Srqs)
  ROCEGW_LIST_OF_GATEWAY(Pools)
  ROCEGW_LIST_OF_GATEWAY(Events)
#undef ROCEGW_LIST_OF_GATEWAY
  grpc::ServerUnaryReactor* GetGatewayCounters(grpc::CallbackServerContext* context,
                                               const admin::v1::GetGatewayCountersRequest* request,
                                               gateway::v1::GetCountersResponse* response) override;
  grpc::ServerUnaryReactor* DiagnoseGateway(grpc::CallbackServerContext* context,
                                            const admin::v1::DiagnoseGatewayRequest* request,
                                            gateway::v1::DiagnoseResponse* response) override;
  grpc::ServerUnaryReactor* ExplainGateway(grpc::CallbackServerContext* context,
                                           const admin::v1::ExplainGatewayRequest* request,
                                           gateway::v1::ExplainResponse* response) override;
  grpc::ServerWriteReactor<gateway::v1::CaptureChunk>* CaptureGateway(
      grpc::CallbackServerContext* context,
      const admin::v1::CaptureGatewayRequest* request) override;
  grpc::ServerUnaryReactor* TestConnectivity(
      grpc::CallbackServerContext* context, const admin::v1::TestConnectivityRequest* request,
      admin::v1::TestConnectivityResponse* response) override;

 private:
  const Backend& backend_;
  sync::NodeHub& hub_;
  Replicas& replicas_;
  const GatewayQuestions questions_;
  Enrollment& enrollment_;
  FleetAdoption adoption_;
  StandardService<types::v1::Gateway> standard_;
  StandardService<types::v1::Operation> operations_;
  ConnectivityTests connectivity_tests_;
};

}  // namespace rocegw::api
