// SPDX-License-Identifier: Apache-2.0
// gateway.v1.TakeOverService on the callback API: a process that may open the daemon's socket may
// have the daemon replaced by the installed program. Handlers ask the source and return. Included
// by grpc_server.cc only: gRPC headers are heavy.
#pragma once

#include "gateway/service/sources/take_over_source.h"
#include "rocegw/gateway/v1/take_over.grpc.pb.h"

namespace rocegw::service {

class TakeOverService final : public gateway::v1::TakeOverService::CallbackService {
 public:
  // `source` outlives the service.
  explicit TakeOverService(TakeOverSource& source) : source_(source) {}

  grpc::ServerUnaryReactor* TakeOver(grpc::CallbackServerContext* context,
                                     const gateway::v1::TakeOverRequest* request,
                                     gateway::v1::TakeOverResponse* response) override;

 private:
  TakeOverSource& source_;
};

}  // namespace rocegw::service
