// SPDX-License-Identifier: Apache-2.0
#include "gateway/service/config_service.h"

#include "gateway/service/call_rules.h"
#include "gateway/service/state_messages.h"

namespace rocegw::service {
namespace {

// Name of the configuration from the daemon's file; no store has this name.
constexpr char kStatic[] = "static";

grpc::Status Stopping() { return {grpc::StatusCode::UNAVAILABLE, "the gateway is stopping"}; }

}  // namespace

grpc::ServerUnaryReactor* ConfigService::Apply(grpc::CallbackServerContext* context,
                                               const gateway::v1::ApplyRequest* request,
                                               gateway::v1::ApplyResponse* response) {
  if (grpc::Status wrong = CheckDeadline(*context); !wrong.ok()) return Refuse(context, wrong);
  const types::v1::Push& push = request->push();
  if (push.store_uuid().empty() || push.store_uuid() == kStatic) {
    return Refuse(context, {grpc::StatusCode::INVALID_ARGUMENT,
                            "push.store_uuid must name the store that the push comes from"});
  }
  if (push.revision() <= 0) {
    return Refuse(context,
                  {grpc::StatusCode::INVALID_ARGUMENT, "push.revision must be more than 0"});
  }
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  source_.Apply(push, [reactor, response](bool running, types::v1::PushReport report) {
    *response->mutable_report() = std::move(report);
    reactor->Finish(running ? grpc::Status::OK : Stopping());
  });
  return reactor;
}

grpc::ServerUnaryReactor* ConfigService::GetConfig(grpc::CallbackServerContext* context,
                                                   const gateway::v1::GetConfigRequest*,
                                                   gateway::v1::GetConfigResponse* response) {
  if (grpc::Status wrong = CheckDeadline(*context); !wrong.ok()) return Refuse(context, wrong);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  source_.Describe([reactor, response](bool running, gateway::v1::GetConfigResponse config) {
    *response = std::move(config);
    reactor->Finish(running ? grpc::Status::OK : Stopping());
  });
  return reactor;
}

grpc::ServerUnaryReactor* ConfigService::Drain(grpc::CallbackServerContext* context,
                                               const gateway::v1::DrainRequest* request,
                                               gateway::v1::DrainResponse* response) {
  if (grpc::Status wrong = CheckDeadline(*context); !wrong.ok()) return Refuse(context, wrong);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  source_.Drain(request->drain(), [reactor, response](bool running, const session::DrainRow& row) {
    response->set_admin_state(row.active ? types::v1::DRAINING : types::v1::ACTIVE);
    if (row.active) FillDrain(row, *response->mutable_progress());
    reactor->Finish(running ? grpc::Status::OK : Stopping());
  });
  return reactor;
}

}  // namespace rocegw::service
