// SPDX-License-Identifier: Apache-2.0
#include "gateway/service/take_over_service.h"

#include <cerrno>

#include "gateway/service/call_rules.h"
#include "gateway/service/state_messages.h"

namespace rocegw::service {
namespace {

grpc::Status ErrorOf(const Status& status) {
  return {status.error() == ESTALE ? grpc::StatusCode::FAILED_PRECONDITION
                                   : grpc::StatusCode::UNAVAILABLE,
          status.text()};
}

}  // namespace

grpc::ServerUnaryReactor* TakeOverService::TakeOver(grpc::CallbackServerContext* context,
                                                    const gateway::v1::TakeOverRequest* request,
                                                    gateway::v1::TakeOverResponse* response) {
  if (grpc::Status wrong = CheckDeadline(*context); !wrong.ok()) return Refuse(context, wrong);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const auto answer = [reactor, response](const StatusOr<TakeOverOutcome>& outcome) {
    if (!outcome.ok()) return reactor->Finish(ErrorOf(outcome.status()));
    response->set_refusal(outcome.value().refusal);
    response->set_text(outcome.value().text);
    if (outcome.value().refusal.empty()) {
      FillDuration(outcome.value().blackout, *response->mutable_blackout());
      FillTotals(outcome.value().handed_over, *response->mutable_handed_over());
    }
    reactor->Finish(grpc::Status::OK);
  };
  source_.TakeOver(request->take_overs(), answer);
  return reactor;
}

}  // namespace rocegw::service
