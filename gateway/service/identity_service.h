// SPDX-License-Identifier: Apache-2.0
// gateway.v1.IdentityService on the callback API: a process that may open the daemon's socket
// decides which processes may attach to pools. Handlers ask the source and return. Included by
// grpc_server.cc only: gRPC headers are heavy.
#pragma once

#include "gateway/service/sources/attach_source.h"
#include "rocegw/gateway/v1/identity.grpc.pb.h"

namespace rocegw::service {

class IdentityService final : public gateway::v1::IdentityService::CallbackService {
 public:
  // `source` outlives the service.
  explicit IdentityService(AttachSource& source) : source_(source) {}

  grpc::ServerUnaryReactor* ListHeldAttaches(
      grpc::CallbackServerContext* context, const gateway::v1::ListHeldAttachesRequest* request,
      gateway::v1::ListHeldAttachesResponse* response) override;
  grpc::ServerUnaryReactor* AnswerAttach(grpc::CallbackServerContext* context,
                                         const gateway::v1::AnswerAttachRequest* request,
                                         gateway::v1::AnswerAttachResponse* response) override;
  grpc::ServerUnaryReactor* ClearSocket(grpc::CallbackServerContext* context,
                                        const gateway::v1::ClearSocketRequest* request,
                                        gateway::v1::ClearSocketResponse* response) override;

 private:
  AttachSource& source_;
};

}  // namespace rocegw::service
