// SPDX-License-Identifier: Apache-2.0
#include "controlplane/donors/donors_service.h"

#include <utility>

#include "controlplane/api/calls/unary_call.h"

namespace rocegw::donors {
namespace {

using SpecChange = std::function<void(types::v1::DonorSpec&)>;

api::PlanOrError PlanSpec(const sync::Fleet& fleet, const std::string& name,
                          const SpecChange& change, const api::Birth& birth) {
  const auto known = fleet.view.donors.find(name);
  if (known == fleet.view.donors.end()) return api::NotFound(name);
  types::v1::Donor after = known->second.object;
  change(*after.mutable_spec());
  if (model::Serialized(after.spec()) != model::Serialized(known->second.object.spec())) {
    after.mutable_meta()->set_generation(after.meta().generation() + 1);
    *after.mutable_meta()->mutable_update_time() = birth.time;
  }
  return api::PlanPut(fleet, std::move(after), known->second.intent_revision);
}

}  // namespace

template <typename Request>
grpc::ServerUnaryReactor* DonorsService::ChangeSpec(grpc::CallbackServerContext* context,
                                                    const Request& request, SpecChange change,
                                                    types::v1::Donor* response) {
  return standard_.Write(
      context, request, {}, response,
      [name = request.name(), change = std::move(change), birth = api::NewBirth()](
          const sync::Fleet& fleet) { return PlanSpec(fleet, name, change, birth); });
}

grpc::ServerUnaryReactor* DonorsService::DrainDonor(grpc::CallbackServerContext* context,
                                                    const admin::v1::DrainDonorRequest* request,
                                                    types::v1::Donor* response) {
  return ChangeSpec(
      context, *request, [](auto& spec) { spec.set_admin_state(types::v1::DRAINING); }, response);
}

grpc::ServerUnaryReactor* DonorsService::UndrainDonor(grpc::CallbackServerContext* context,
                                                      const admin::v1::UndrainDonorRequest* request,
                                                      types::v1::Donor* response) {
  return ChangeSpec(
      context, *request, [](auto& spec) { spec.set_admin_state(types::v1::ACTIVE); }, response);
}

grpc::ServerUnaryReactor* DonorsService::ApproveDonor(grpc::CallbackServerContext* context,
                                                      const admin::v1::ApproveDonorRequest* request,
                                                      types::v1::Donor* response) {
  return ChangeSpec(
      context, *request, [](auto& spec) { spec.set_approved(true); }, response);
}

grpc::ServerUnaryReactor* DonorsService::RevokeDonor(grpc::CallbackServerContext* context,
                                                     const admin::v1::RevokeDonorRequest* request,
                                                     types::v1::Donor* response) {
  return ChangeSpec(
      context, *request, [](auto& spec) { spec.set_approved(false); }, response);
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
                                  .donors = request->donors(),
                                  .pool = request->pool()},
                                 searches_, *response));
  };
  return api::WhenAdmitted(*context, *request, backend_.follower, serve);
}

}  // namespace rocegw::donors
