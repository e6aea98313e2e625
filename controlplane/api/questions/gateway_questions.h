// SPDX-License-Identifier: Apache-2.0
// Questions that a gateway answers itself through its agent's tunnel: after admission, the gateway
// must exist; then the tunnel's answer is the call's. A capture shows what programs send, so it
// starts only after its audit record is stored. gRPC's threads.
#pragma once

#include <string>

#include "controlplane/api/calls/unary_call.h"
#include "controlplane/api/questions/question_router.h"
#include "controlplane/api/services/standard_service.h"
#include "proto/tunnel/tunnel_calls.h"
#include "rocegw/admin/v1/gateways.pb.h"
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
                                     const fleet::v1::TunnelQuestion& question,
                                     Response* response) {
  const tunnel::TunnelCall* const call = tunnel::CallWith(Response::descriptor());
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted&) {
    if (!questions.Exists(gateway)) return reactor->Finish(ToStatus(NotFound(gateway)));
    questions.router.Ask(gateway, question, context.deadline(),
                         [reactor, response, call](const sync::TunnelResult& result) {
                           for (const fleet::v1::TunnelAnswer& answer : result.parts)
                             response->MergeFrom(call->ResponseIn(answer));
                           reactor->Finish(StatusOf(result));
                         });
  };
  return WhenAdmitted(context, request, questions.backend.follower, serve);
}

// Asks the gateway for a list of its objects: the requested page.
template <typename Response>
grpc::ServerUnaryReactor* ListOfGateway(grpc::CallbackServerContext& context,
                                        const admin::v1::ListGatewayObjectsRequest& request,
                                        const GatewayQuestions& questions, Response* response) {
  fleet::v1::TunnelQuestion question;
  google::protobuf::Message& list = tunnel::CallWith(Response::descriptor())->RequestIn(question);
  const auto& fields = *list.GetDescriptor();
  list.GetReflection()->SetInt32(&list, fields.FindFieldByName("page_size"), request.page_size());
  list.GetReflection()->SetString(&list, fields.FindFieldByName("page_token"),
                                  request.page_token());
  return AskGateway(context, request, questions, request.parent(), question, response);
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
