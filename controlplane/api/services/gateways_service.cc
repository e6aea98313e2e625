// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/services/gateways_service.h"

#include <google/protobuf/util/time_util.h>

#include <utility>

#include "controlplane/api/nodes/sent_progress.h"
#include "controlplane/api/writes/drain.h"
#include "controlplane/store/random_uuid.h"
#include "gateway/process/build_info.h"

namespace rocegw::api {
namespace {

using fleet::v1::TunnelQuestion;

// Returns an operation id: verb, gateway and a unique part.
std::string OperationId(const std::string& verb, const std::string& gateway) {
  constexpr size_t kLongestName = 40;
  std::string id = verb + "-" + model::NameOf(gateway).id.substr(0, kLongestName);
  while (id.back() == '-') id.pop_back();
  return id + "-" + store::RandomUuid().substr(0, 8);
}

}  // namespace

grpc::ServerUnaryReactor* GatewaysService::GetGateway(grpc::CallbackServerContext* context,
                                                      const admin::v1::GetGatewayRequest* request,
                                                      types::v1::Gateway* response) {
  return standard_.Get(context, *request, response);
}

grpc::ServerUnaryReactor* GatewaysService::ListGateways(
    grpc::CallbackServerContext* context, const admin::v1::ListGatewaysRequest* request,
    admin::v1::ListGatewaysResponse* response) {
  return standard_.List(context, *request, model::Collection::kGateways, {}, response,
                        [response] { return response->add_gateways(); });
}

grpc::ServerWriteReactor<admin::v1::WatchGatewaysResponse>* GatewaysService::WatchGateways(
    grpc::CallbackServerContext* context, const admin::v1::WatchGatewaysRequest* request) {
  return standard_.Watch<admin::v1::WatchGatewaysResponse>(
      context, *request, model::Collection::kGateways, {},
      [](admin::v1::WatchGatewaysResponse& response) { return response.add_changed(); });
}

grpc::ServerUnaryReactor* GatewaysService::CreateGateway(
    grpc::CallbackServerContext* context, const admin::v1::CreateGatewayRequest* request,
    types::v1::Gateway* response) {
  return standard_.Create(context, *request, request->gateway(), response);
}

grpc::ServerUnaryReactor* GatewaysService::UpdateGateway(
    grpc::CallbackServerContext* context, const admin::v1::UpdateGatewayRequest* request,
    types::v1::Gateway* response) {
  return standard_.Update(context, *request, request->gateway(), response);
}

grpc::ServerUnaryReactor* GatewaysService::DeleteGateway(
    grpc::CallbackServerContext* context, const admin::v1::DeleteGatewayRequest* request,
    admin::v1::DeleteGatewayResponse*) {
  return standard_.Write(
      context, *request, request->etag(), nullptr,
      [this, name = request->name(), etag = request->etag()](const sync::Fleet& fleet) {
        return enrollment_.PlanDelete(fleet, name, etag, identity::Now());
      });
}

grpc::ServerUnaryReactor* GatewaysService::DrainGateway(
    grpc::CallbackServerContext* context, const admin::v1::DrainGatewayRequest* request,
    types::v1::Operation* response) {
  const std::string principal = backend_.follower.Read(
      [&](const sync::Fleet& fleet) { return CallerOf(*context, fleet.view).principal; });
  return operations_.Write(context, *request, {}, response,
                           [request = *request, principal, birth = NewBirth(),
                            id = OperationId("drain", request->name())](const sync::Fleet& fleet) {
                             return PlanDrain(fleet, request, id, principal, birth);
                           });
}

grpc::ServerUnaryReactor* GatewaysService::UndrainGateway(
    grpc::CallbackServerContext* context, const admin::v1::UndrainGatewayRequest* request,
    types::v1::Gateway* response) {
  return standard_.Write(context, *request, {}, response,
                         [name = request->name(), birth = NewBirth()](const sync::Fleet& fleet) {
                           return PlanUndrain(fleet, name, birth);
                         });
}

grpc::ServerUnaryReactor* GatewaysService::RevokeGateway(
    grpc::CallbackServerContext* context, const admin::v1::RevokeGatewayRequest* request,
    admin::v1::RevokeGatewayResponse*) {
  return WhenAdmitted(*context, *request, backend_.follower,
                      [&](grpc::ServerUnaryReactor* reactor, const Admitted& admitted) {
                        enrollment_.Revoke(CallOf(admitted, *request), request->name(),
                                           [reactor](const std::optional<ApiError>& error) {
                                             reactor->Finish(error.has_value() ? ToStatus(*error)
                                                                               : grpc::Status::OK);
                                           });
                      });
}

grpc::ServerUnaryReactor* GatewaysService::RotateFleetKeys(
    grpc::CallbackServerContext* context, const admin::v1::RotateFleetKeysRequest* request,
    admin::v1::RotateFleetKeysResponse* response) {
  using Outcome = std::variant<admin::v1::RotateFleetKeysResponse, ApiError>;
  return WhenAdmitted(*context, *request, backend_.follower,
                      [&](grpc::ServerUnaryReactor* reactor, const Admitted& admitted) {
                        enrollment_.RotateKeys(
                            CallOf(admitted, *request),
                            [reactor, response](const Outcome& outcome) {
                              if (const auto* error = std::get_if<ApiError>(&outcome))
                                return reactor->Finish(ToStatus(*error));
                              *response = std::get<admin::v1::RotateFleetKeysResponse>(outcome);
                              reactor->Finish(grpc::Status::OK);
                            });
                      });
}

grpc::ServerUnaryReactor* GatewaysService::AdoptFleet(grpc::CallbackServerContext* context,
                                                      const admin::v1::AdoptFleetRequest* request,
                                                      admin::v1::AdoptFleetResponse* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted& admitted) {
    adoption_.Adopt(CallOf(admitted, *request), request->name(), context->deadline(),
                    [reactor, response](std::variant<uint32_t, ApiError> outcome) {
                      if (const auto* error = std::get_if<ApiError>(&outcome))
                        return reactor->Finish(ToStatus(*error));
                      response->set_gateways(std::get<uint32_t>(outcome));
                      reactor->Finish(grpc::Status::OK);
                    });
  };
  return WhenAdmitted(*context, *request, backend_.follower, serve);
}

grpc::ServerUnaryReactor* GatewaysService::CreateJoinToken(
    grpc::CallbackServerContext* context, const admin::v1::CreateJoinTokenRequest* request,
    admin::v1::CreateJoinTokenResponse* response) {
  return WhenAdmitted(*context, *request, backend_.follower,
                      [&](grpc::ServerUnaryReactor* reactor, const Admitted& admitted) {
                        const std::chrono::seconds lifetime(request->lifetime().seconds());
                        enrollment_.CreateToken(
                            admitted, request->name(), lifetime,
                            [reactor, response](std::variant<std::string, ApiError> outcome) {
                              if (const auto* error = std::get_if<ApiError>(&outcome))
                                return reactor->Finish(ToStatus(*error));
                              response->set_token_file(std::move(std::get<std::string>(outcome)));
                              reactor->Finish(grpc::Status::OK);
                            });
                      });
}

grpc::ServerUnaryReactor* GatewaysService::GetFleetProgress(
    grpc::CallbackServerContext* context, const admin::v1::GetFleetProgressRequest* request,
    admin::v1::GetFleetProgressResponse* response) {
  const auto answer = [response](const sync::FleetProgress& here, const sync::FleetProgress& others,
                                 uint32_t silent) {
    response->set_revision(here.revision);
    response->set_gateways(here.gateways);
    response->set_connected(here.connected + others.connected);
    response->set_in_sync(here.in_sync + others.in_sync);
    response->set_unadopted(here.unadopted + others.unadopted);
    response->set_rejecting(here.rejecting + others.rejecting);
    response->set_silent_controllers(silent);
    response->set_version(process::Version());
    *response->mutable_read_time() = google::protobuf::util::TimeUtil::NanosecondsToTimestamp(
        identity::Now().time_since_epoch() / std::chrono::nanoseconds(1));
  };
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted&) {
    AwaitSent(backend_.follower, hub_, request->revision(), *reactor,
              [this, answer, reactor, revision = request->revision(),
               deadline = context->deadline()](const sync::FleetProgress& here) {
                replicas_.AddProgress(
                    revision, deadline,
                    [answer, reactor, here](const sync::FleetProgress& others, uint32_t silent) {
                      answer(here, others, silent);
                      reactor->Finish(grpc::Status::OK);
                    });
              });
  };
  return WhenAdmitted(*context, *request, backend_.follower, serve);
}

grpc::ServerUnaryReactor* GatewaysService::GetGatewayStatus(
    grpc::CallbackServerContext* context, const admin::v1::GetGatewayStatusRequest* request,
    types::v1::GatewayStatus* response) {
  TunnelQuestion question;
  question.mutable_get_status();
  return AskGateway(*context, *request, questions_, request->name(), question, response);
}

grpc::ServerUnaryReactor* GatewaysService::GetGatewayCounters(
    grpc::CallbackServerContext* context, const admin::v1::GetGatewayCountersRequest* request,
    gateway::v1::GetCountersResponse* response) {
  TunnelQuestion question;
  question.mutable_get_counters();
  return AskGateway(*context, *request, questions_, request->name(), question, response);
}

grpc::ServerUnaryReactor* GatewaysService::ExplainGateway(
    grpc::CallbackServerContext* context, const admin::v1::ExplainGatewayRequest* request,
    gateway::v1::ExplainResponse* response) {
  TunnelQuestion question;
  *question.mutable_explain() = request->explain();
  return AskGateway(*context, *request, questions_, request->name(), question, response);
}

grpc::ServerUnaryReactor* GatewaysService::DiagnoseGateway(
    grpc::CallbackServerContext* context, const admin::v1::DiagnoseGatewayRequest* request,
    gateway::v1::DiagnoseResponse* response) {
  TunnelQuestion question;
  question.mutable_diagnose();
  return AskGateway(*context, *request, questions_, request->name(), question, response);
}

grpc::ServerWriteReactor<gateway::v1::CaptureChunk>* GatewaysService::CaptureGateway(
    grpc::CallbackServerContext* context, const admin::v1::CaptureGatewayRequest* request) {
  Admitted admitted;
  if (auto error = Admit(*context, CallKind::kStream, *request, backend_.follower, admitted))
    return RefusedCapture(*error);
  return NewCapture(*context, questions_, admitted, *request, request->name(), request->capture());
}

grpc::ServerUnaryReactor* GatewaysService::TestConnectivity(
    grpc::CallbackServerContext* context, const admin::v1::TestConnectivityRequest* request,
    admin::v1::TestConnectivityResponse* response) {
  const auto refuse = [context](const ApiError& error) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(ToStatus(error));
    return reactor;
  };
  Admitted admitted;
  if (auto error = Admit(*context, CallKind::kUnary, *request, backend_.follower, admitted))
    return refuse(*error);
  for (const std::string& name : {request->from(), request->to()}) {
    if (!questions_.Exists(name)) return refuse(NotFound(name));
  }
  if (!connectivity_tests_.Begin()) {
    return refuse({grpc::StatusCode::RESOURCE_EXHAUSTED,
                   "TOO_MANY_TESTS",
                   "this controller runs as many connectivity tests as it may; try again",
                   {},
                   {}});
  }
  return NewConnectivityTest(*context, questions_, connectivity_tests_, admitted, *request,
                             *response);
}

}  // namespace rocegw::api
