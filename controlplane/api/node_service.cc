// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/node_service.h"

#include <utility>

#include "controlplane/api/peer_certificate.h"
#include "controlplane/api/unary_call.h"

namespace rocegw::api {
namespace {

// Finishes the call with the answer, or with why there is none.
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
  return WhenAdmitted(*context, *request, follower_,
                      [&](grpc::ServerUnaryReactor* reactor, const Admitted& admitted) {
                        enrollment_.Join(admitted, *request, Answer(reactor, response));
                      });
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

}  // namespace rocegw::api
