// SPDX-License-Identifier: Apache-2.0
// gateway.v1.ConfigService on the callback API: every process that may open the daemon's socket may
// change its configuration. Handlers ask the source and return. Included by grpc_server.cc only:
// gRPC headers are heavy.
#pragma once

#include "gateway/service/sources/config_source.h"
#include "rocegw/gateway/v1/config.grpc.pb.h"

namespace rocegw::service {

class ConfigService final : public gateway::v1::ConfigService::CallbackService {
 public:
  // `source` outlives the service.
  explicit ConfigService(ConfigSource& source) : source_(source) {}

  grpc::ServerUnaryReactor* Apply(grpc::CallbackServerContext* context,
                                  const gateway::v1::ApplyRequest* request,
                                  gateway::v1::ApplyResponse* response) override;
  grpc::ServerUnaryReactor* GetConfig(grpc::CallbackServerContext* context,
                                      const gateway::v1::GetConfigRequest* request,
                                      gateway::v1::GetConfigResponse* response) override;
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context,
                                  const gateway::v1::DrainRequest* request,
                                  gateway::v1::DrainResponse* response) override;

 private:
  ConfigSource& source_;
};

}  // namespace rocegw::service
