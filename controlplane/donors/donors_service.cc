// SPDX-License-Identifier: Apache-2.0
#include "controlplane/donors/donors_service.h"

#include <utility>

#include "controlplane/api/calls/unary_call.h"

namespace rocegw::donors {
namespace {

api::PlanOrError PlanState(const sync::Fleet& fleet, const std::string& name,
                           types::v1::AdminState state, const api::Birth& birth) {
  const auto known = fleet.view.donors.find(name);
  if (known == fleet.view.donors.end()) return api::NotFound(name);
  types::v1::Donor after = known->second.object;
  if (after.spec().admin_state() != state) {
    after.mutable_spec()->set_admin_state(state);
    after.mutable_meta()->set_generation(after.meta().generation() + 1);
    *after.mutable_meta()->mutable_update_time() = birth.time;
  }
  return api::PlanPut(fleet, std::move(after), known->second.intent_revision);
}

}  // namespace

template <typename Request>
grpc::ServerUnaryReactor* DonorsService::SetAdminState(grpc::CallbackServerContext* context,
                                                       const Request& request,
                                                       types::v1::AdminState state,
                                                       types::v1::Donor* response) {
  return standard_.Write(
      context, request, {}, response,
      [name = request.name(), state, birth = api::NewBirth()](const sync::Fleet& fleet) {
        return PlanState(fleet, name, state, birth);
      });
}

grpc::ServerUnaryReactor* DonorsService::DrainDonor(grpc::CallbackServerContext* context,
                                                    const admin::v1::DrainDonorRequest* request,
                                                    types::v1::Donor* response) {
  return SetAdminState(context, *request, types::v1::DRAINING, response);
}

grpc::ServerUnaryReactor* DonorsService::UndrainDonor(grpc::CallbackServerContext* context,
                                                      const admin::v1::UndrainDonorRequest* request,
                                                      types::v1::Donor* response) {
  return SetAdminState(context, *request, types::v1::ACTIVE, response);
}

grpc::ServerUnaryReactor* DonorsService::FindDonors(grpc::CallbackServerContext* context,
                                                    const admin::v1::FindDonorsRequest* request,
                                                    admin::v1::FindDonorsResponse* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const api::Admitted& admitted) {
    if (!search_pace_.May(admitted.principal)) {
      ++searches_.refused;
      return reactor->Finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
                              admitted.principal + " searches for donors too often"});
    }
    reactor->Finish(AnswerSearch(backend_.follower,
                                 {.tenant = request->tenant(),
                                  .bytes = request->bytes(),
                                  .replicas = request->replicas(),
                                  .donors = request->donors()},
                                 searches_, *response));
  };
  return api::WhenAdmitted(*context, *request, backend_.follower, serve);
}

}  // namespace rocegw::donors
