// SPDX-License-Identifier: Apache-2.0
// Questions that a gateway answers itself through its agent's tunnel: after admission, the gateway
// must exist; then the tunnel's answer is the call's. A capture shows what programs send, so it
// starts only after its audit record is stored. gRPC's threads.
#pragma once

#include <string>

#include "controlplane/api/calls/unary_call.h"
#include "controlplane/api/questions/question_router.h"
#include "controlplane/api/services/standard_service.h"
#include "rocegw/gateway/v1/debug.pb.h"

namespace rocegw::api {

// All arguments outlive the calls.
struct GatewayQuestions {
  const Backend& backend;
  QuestionRouter& router;

  bool Exists(const std::string& gateway) const {
    return backend.follower.Read(
        [&](const sync::Fleet& fleet) { return fleet.view.gateways.contains(gateway); });
  }
};

// Returns the status of a call whose question had this result.
grpc::Status StatusOf(const sync::TunnelResult& result);

// Asks the gateway. The answer is the only part, or the merge of its parts: lists are appended.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* AskGateway(grpc::CallbackServerContext& context, const Request& request,
                                     const GatewayQuestions& questions, const std::string& gateway,
                                     const fleet::v1::TunnelQuestion& question, Response* response,
                                     const Response& (fleet::v1::TunnelAnswer::*part)() const) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted&) {
    if (!questions.Exists(gateway)) return reactor->Finish(ToStatus(NotFound(gateway)));
    questions.router.Ask(gateway, question, context.deadline(),
                         [reactor, response, part](const sync::TunnelResult& result) {
                           for (const fleet::v1::TunnelAnswer& answer : result.parts)
                             response->MergeFrom((answer.*part)());
                           reactor->Finish(StatusOf(result));
                         });
  };
  return WhenAdmitted(context, request, questions.backend.follower, serve);
}

// Starts a capture for an admitted call; ends with the call. The gateway may be a few parts ahead
// of the caller, so a slow caller loses captured packets and costs no memory. `asked`: text for the
// audit record.
grpc::ServerWriteReactor<gateway::v1::CaptureChunk>* NewCapture(
    const grpc::CallbackServerContext& context, const GatewayQuestions& questions,
    const Admitted& caller, const google::protobuf::Message& asked, const std::string& gateway,
    const gateway::v1::CaptureRequest& capture);
grpc::ServerWriteReactor<gateway::v1::CaptureChunk>* RefusedCapture(const ApiError& error);

}  // namespace rocegw::api
