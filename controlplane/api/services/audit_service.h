// SPDX-License-Identifier: Apache-2.0
// admin.v1.Audit: who changed what, and verification that the records are unchanged. gRPC's and the
// store's threads.
#pragma once

#include "controlplane/api/services/standard_service.h"
#include "rocegw/admin/v1/operations.grpc.pb.h"

namespace rocegw::api {

class AuditService final : public admin::v1::Audit::CallbackService {
 public:
  explicit AuditService(const Backend& backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* ListRecords(grpc::CallbackServerContext* context,
                                        const admin::v1::ListRecordsRequest* request,
                                        admin::v1::ListRecordsResponse* response) override;
  grpc::ServerUnaryReactor* Verify(grpc::CallbackServerContext* context,
                                   const admin::v1::VerifyRequest* request,
                                   admin::v1::VerifyResponse* response) override;

 private:
  const Backend& backend_;
};

}  // namespace rocegw::api
