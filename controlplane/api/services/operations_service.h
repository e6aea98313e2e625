// SPDX-License-Identifier: Apache-2.0
// admin.v1.Operations. gRPC's threads.
#pragma once

#include "controlplane/api/services/standard_service.h"
#include "rocegw/admin/v1/operations.grpc.pb.h"

namespace rocegw::api {

class OperationsService final : public admin::v1::Operations::CallbackService {
 public:
  explicit OperationsService(const Backend& backend) : backend_(backend), standard_(backend) {}

  grpc::ServerUnaryReactor* GetOperation(grpc::CallbackServerContext* context,
                                         const admin::v1::GetOperationRequest* request,
                                         types::v1::Operation* response) override;
  grpc::ServerUnaryReactor* ListOperations(grpc::CallbackServerContext* context,
                                           const admin::v1::ListOperationsRequest* request,
                                           admin::v1::ListOperationsResponse* response) override;
  grpc::ServerWriteReactor<admin::v1::WatchOperationsResponse>* WatchOperations(
      grpc::CallbackServerContext* context,
      const admin::v1::WatchOperationsRequest* request) override;
  grpc::ServerUnaryReactor* WaitOperation(grpc::CallbackServerContext* context,
                                          const admin::v1::WaitOperationRequest* request,
                                          types::v1::Operation* response) override;
  grpc::ServerUnaryReactor* CancelOperation(grpc::CallbackServerContext* context,
                                            const admin::v1::CancelOperationRequest* request,
                                            types::v1::Operation* response) override;

 private:
  const Backend& backend_;
  StandardService<types::v1::Operation> standard_;
};

}  // namespace rocegw::api
