// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/nodes/node_service.h"

#include <memory>
#include <utility>

#include "controlplane/api/calls/peer_certificate.h"
#include "controlplane/api/calls/unary_call.h"
#include "controlplane/api/nodes/fleet_keys.h"

namespace rocegw::api {
namespace {

// Limit of concurrent Join calls: any host may call Join, and each call costs a read of the store.
constexpr int kMostJoins = 32;

// Returns a function that finishes the call with an answer or an error.
template <typename Response>
auto Answer(grpc::ServerUnaryReactor* reactor, Response* response) {
  return [reactor, response](std::variant<Response, ApiError> outcome) {
    if (const auto* error = std::get_if<ApiError>(&outcome)) {
      return reactor->Finish(ToStatus(*error));
    }
    *response = std::move(std::get<Response>(outcome));
    reactor->Finish(grpc::Status::OK);
  };
}

}  // namespace

grpc::ServerUnaryReactor* NodeService::Join(grpc::CallbackServerContext* context,
                                            const fleet::v1::JoinRequest* request,
                                            fleet::v1::JoinResponse* response) {
  const bool too_many = joining_.fetch_add(1) >= kMostJoins;
  const std::shared_ptr<void> counted(nullptr, [this](void*) { joining_.fetch_sub(1); });
  if (too_many) {
    auto* const reactor = context->DefaultReactor();
    reactor->Finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
                     "too many hosts are joining at once; try again in a moment"});
    return reactor;
  }
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted& admitted) {
    enrollment_.Join(admitted, *request,
                     [counted, answer = Answer(reactor, response)](auto outcome) {
                       answer(std::move(outcome));
                     });
  };
  return WhenAdmitted(*context, *request, follower_, serve);
}

grpc::ServerUnaryReactor* NodeService::Renew(grpc::CallbackServerContext* context,
                                             const fleet::v1::RenewRequest* request,
                                             fleet::v1::RenewResponse* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted& admitted) {
    const auto certificate = CertificateOf(*context->auth_context());
    const std::string serial = certificate.has_value() ? certificate->serial : std::string();
    enrollment_.Renew(admitted, *request, serial, Answer(reactor, response));
  };
  return WhenAdmitted(*context, *request, follower_, serve);
}

grpc::ServerUnaryReactor* NodeService::GetFleetKeys(grpc::CallbackServerContext* context,
                                                    const fleet::v1::GetFleetKeysRequest* request,
                                                    fleet::v1::GetFleetKeysResponse* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted&) {
    const auto certificate = CertificateOf(*context->auth_context());
    const auto found = follower_.Read([&](const sync::Fleet& fleet) {
      return FleetKeysFor(fleet, keys_, certificate, identity::Now());
    });
    if (!found.has_value()) {
      return reactor->Finish(ToStatus(
          {grpc::StatusCode::UNAUTHENTICATED,
           "CERTIFICATE_REVOKED",
           "the certificate of " + request->gateway() + " was revoked or replaced: join anew",
           {},
           {}}));
    }
    for (const std::string& key : found->keys) response->add_keys(key);
    response->mutable_refresh_after()->set_seconds(found->refresh_after.count());
    reactor->Finish(grpc::Status::OK);
  };
  return WhenAdmitted(*context, *request, follower_, serve);
}

}  // namespace rocegw::api
